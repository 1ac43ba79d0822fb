import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

export function receiver(secret, handle) {
  const webhook = new Webhook(secret);
  return createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString(); // as it arrived, not parsed
    let event;
    try {
      event = webhook.verify(body, request.headers);
    } catch {
      response.writeHead(400).end();
      return;
    }
    handle(request.headers["webhook-id"], event);
    response.writeHead(204).end();
  });
}

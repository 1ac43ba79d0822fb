import { createServer } from "node:http";
import { verifyWebhook } from "animalstore";

export function receiver(secrets, handle) {
  return createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks); // as it arrived, not parsed
    let message;
    try {
      message = await verifyWebhook(secrets, request.headers, body);
    } catch {
      response.writeHead(400).end();
      return;
    }
    handle(request.headers["webhook-id"], message);
    response.writeHead(204).end();
  });
}

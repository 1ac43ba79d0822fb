from http.server import BaseHTTPRequestHandler

from standardwebhooks import Webhook, WebhookVerificationError


def receiver(secret, handle):
    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))  # as it arrived, not parsed
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                event = Webhook(secret()).verify(body, headers)
            except WebhookVerificationError:
                self.send_response(400)
            else:
                handle(headers["webhook-id"], event)
                self.send_response(204)
            self.end_headers()

    return Receiver

from http.server import BaseHTTPRequestHandler

from animalstore import webhook


def receiver(secrets, handle):
    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))  # as it arrived, not parsed
            try:
                message = webhook.verify(secrets, self.headers, body)
            except webhook.WebhookError:
                self.send_response(400)
            else:
                handle(self.headers["webhook-id"], message)
                self.send_response(204)
            self.end_headers()

    return Receiver

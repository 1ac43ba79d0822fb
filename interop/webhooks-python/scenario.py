"""Gets a webhook of a new pet, and refuses one that was forged."""

import json
import os
import queue
import threading
import time
import urllib.error
import urllib.request
from http.server import ThreadingHTTPServer

from receiver import receiver


def post(url, body, headers):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.loads(response.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, None


def api(path, body):
    return post(os.environ["ANIMALSTORE_URL"] + path, body, {"Authorization": "Bearer " + os.environ["ANIMALSTORE_API_KEY"]})[1]


arrived = queue.Queue()
secrets = []  # the address has to be known before the secret is
server = ThreadingHTTPServer(("127.0.0.1", 0), receiver(lambda: secrets[0], lambda *got: arrived.put(got)))
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/hook"
secrets.append(api("/webhooks", {"url": url, "types": ["pet.created"]})["secret"])

pet = api("/pets", {"name": "Mia <3 ü", "categoryId": 7})
webhook_id, event = arrived.get(timeout=30)
assert webhook_id.startswith("evt_"), webhook_id
assert event["type"] == "pet.created" and event["data"] == pet, event

forged = {"webhook-id": webhook_id, "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,AAAA"}
status, _ = post(url, {}, forged)
assert status == 400, status

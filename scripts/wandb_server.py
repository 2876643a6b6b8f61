"""As much of Weights & Biases' server as `wandb sync` of wandb 0.31.0 asks for, on the loopback interface:
runs, the stream of their history, and uploads. It keeps all in memory and looks at no key."""
import gzip
import http.server
import json
import re
import threading
import urllib.parse


class Server:
    def __init__(self):
        self.lines = {}   # file of the stream -> its lines
        self.files = {}   # what was uploaded, by name
        self.bucket = {}  # the run
        self.exit_code = None
        self.lock = threading.Lock()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.answer(self.body())

            do_POST = do_PUT = do_GET

            def body(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                return gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body

            def answer(self, body):
                with server.lock:
                    answer = json.dumps(server.handle(self.path, body)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *unused):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.handle_error = lambda *unused: None  # a client may go without a word
        self.address = f"http://127.0.0.1:{self.http.server_port}"

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *unused):
        self.http.shutdown()

    def history(self):
        return [json.loads(line) for line in self.lines.get("wandb-history.jsonl", [])]

    def handle(self, path, body):
        if path.startswith("/upload/"):
            self.files[urllib.parse.unquote(path[8:])] = body
            return {}
        if path.endswith("/file_stream"):
            return self.stream(json.loads(body))
        if path.startswith("/graphql"):
            request = json.loads(body)
            return {"data": self.query(request["query"], request.get("variables") or {})}
        return {}

    def stream(self, message):
        for name, part in message.get("files", {}).items():
            at = part["offset"]
            self.lines.setdefault(name, [])[at:at + len(part["content"])] = part["content"]
        if message.get("complete"):
            self.exit_code = message.get("exitcode")
        return {"limits": {}}

    def query(self, text, variables):
        name = re.search(r"\{\s*(\w+)", text.split(")", 1)[-1] if "(" in text else text)
        if "upsertBucket" in text:
            known = bool(self.bucket)
            self.bucket.update({key: value for key, value in variables.items() if value is not None})
            return {"upsertBucket": {"bucket": self.run(), "inserted": not known}}
        if "createRunFiles" in text:
            files = [{"name": one, "uploadUrl": f"{self.address}/upload/{urllib.parse.quote(one)}"}
                     for one in variables["files"]]
            return {"createRunFiles": {"runID": "run", "uploadHeaders": [], "files": files}}
        if "RunResumeStatus" in text:
            return {"model": {"id": "project", "name": self.bucket.get("project"),
                              "entity": {"id": "entity", "name": self.bucket.get("entity")},
                              "bucket": self.run() if self.bucket else None}}
        return {name.group(1): None} if name else {}

    def run(self):
        history = self.lines.get("wandb-history.jsonl", [])
        return {"id": "run", "name": self.bucket.get("name"), "description": "",
                "displayName": self.bucket.get("displayName"), "sweepName": None,
                "config": self.bucket.get("config", "{}"), "tags": self.bucket.get("tags", []),
                "summaryMetrics": self.bucket.get("summaryMetrics", "{}"), "logLineCount": 0,
                "historyLineCount": len(history), "eventsLineCount": 0,
                "historyTail": json.dumps(history[-1:]), "eventsTail": "[]",
                "wandbConfig": "{}", "stopped": False,
                "project": {"id": "project", "name": self.bucket.get("project"),
                            "entity": {"id": "entity", "name": self.bucket.get("entity") or "me"}}}

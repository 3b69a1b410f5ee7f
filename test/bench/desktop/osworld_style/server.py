"""A small HTTP server inside the desktop, in the manner of OSWorld's: POST /execute starts a process per command,
GET /screenshot takes a picture with PIL and answers with a PNG. It listens on a unix socket, which costs less than OSWorld's TCP through a VM."""
import io, json, socketserver, subprocess, sys
from http.server import BaseHTTPRequestHandler
from PIL import ImageGrab


class Handler(BaseHTTPRequestHandler):
    def address_string(self):
        return 'unix'

    def log_message(self, *_):
        pass

    def answer(self, body, kind):
        self.send_response(200)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        command = json.loads(self.rfile.read(int(self.headers['Content-Length'])))['command']
        r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        self.answer(json.dumps({'status': 'success', 'output': r.stdout, 'error': r.stderr, 'returncode': r.returncode}).encode(), 'application/json')

    def do_GET(self):
        out = io.BytesIO()
        ImageGrab.grab(xdisplay='').save(out, 'PNG')
        self.answer(out.getvalue(), 'image/png')


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


with Server(sys.argv[1], Handler) as server:
    server.serve_forever()

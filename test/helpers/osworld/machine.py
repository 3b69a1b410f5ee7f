"""A stand-in for OSWorld's virtual machine: the part of its server that is used, with Python's standard library alone.
It takes a moment to boot, and a disk that begins with `broken` ends it with a word in its log."""
import json, os, struct, subprocess, sys, time, zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

if os.environ.get('DISK_SIZE') != '32G' or not os.path.exists('/System.qcow2'):
    sys.exit('this is not how OSWorld starts its machine')
if open('/System.qcow2').read().startswith('broken'):
    print('qemu: could not open disk image', flush=True)
    sys.exit(1)
time.sleep(0.5)


def chunk(kind, data):
    body = kind + data
    return struct.pack('>I', len(data)) + body + struct.pack('>I', zlib.crc32(body))


def picture():
    """Grey until something was written into /tmp/screen."""
    grey = 90 if os.path.exists('/tmp/screen') else 30
    rows = (b'\0' + bytes([grey]) * 640 * 3) * 400
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 640, 400, 8, 2, 0, 0, 0)) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b'')


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def reply(self, status, body, kind='application/json'):
        self.send_response(status)
        self.send_header('content-type', kind)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == '/screenshot':
            self.reply(200, picture(), 'image/png')
        else:
            self.reply(404, b'{}')

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['content-length'])))
        if self.path != '/execute':
            self.reply(404, b'{}')
            return
        r = subprocess.run(body['command'], capture_output=True, text=True, timeout=120)
        self.reply(200, json.dumps({'status': 'success', 'output': r.stdout, 'error': r.stderr, 'returncode': r.returncode}).encode())


ThreadingHTTPServer(('0.0.0.0', 5000), Handler).serve_forever()

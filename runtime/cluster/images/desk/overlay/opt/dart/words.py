"""Screens full of texts at known places, drawn as the desktop's applications draw them (Pango and Cairo, its own fonts): what the
embedded policy learns to read from.

stdin: {"seed": n, "count": n, "texts": ["Save", ...], "width": 640, "height": 400, "fonts": [], "sizes": []}; without fonts or sizes (points), those
of the desktop's own applications.
stdout, per screen: one JSON line, then width*height/4 bytes of luminance. The line, in half-size pixels:
{"texts": [index, ...], "boxes": [[x0, y0, x1, y1], ...], "centres": [[x of each character, ...], ...], "middles": [y of the small letters' middle, ...]}
"""
import ctypes
import json
import random
import sys

from PIL import Image, ImageDraw

cairo = ctypes.CDLL("libcairo.so.2")
pango = ctypes.CDLL("libpango-1.0.so.0")
pangocairo = ctypes.CDLL("libpangocairo-1.0.so.0")
gobject = ctypes.CDLL("libgobject-2.0.so.0")
pointer, number, whole = ctypes.c_void_p, ctypes.c_double, ctypes.c_int


class Rectangle(ctypes.Structure):
    _fields_ = [("x", whole), ("y", whole), ("width", whole), ("height", whole)]


def declare(library, name, result, *arguments):
    f = getattr(library, name)
    f.restype, f.argtypes = result, arguments
    return f


surface_for_data = declare(cairo, "cairo_image_surface_create_for_data", pointer, pointer, whole, whole, whole, whole)
surface_flush = declare(cairo, "cairo_surface_flush", None, pointer)
surface_destroy = declare(cairo, "cairo_surface_destroy", None, pointer)
context_create = declare(cairo, "cairo_create", pointer, pointer)
context_destroy = declare(cairo, "cairo_destroy", None, pointer)
move_to = declare(cairo, "cairo_move_to", None, pointer, number, number)
set_colour = declare(cairo, "cairo_set_source_rgb", None, pointer, number, number, number)
layout_create = declare(pangocairo, "pango_cairo_create_layout", pointer, pointer)
show_layout = declare(pangocairo, "pango_cairo_show_layout", None, pointer, pointer)
set_font = declare(pango, "pango_layout_set_font_description", None, pointer, pointer)
set_text = declare(pango, "pango_layout_set_text", None, pointer, ctypes.c_char_p, whole)
index_to_pos = declare(pango, "pango_layout_index_to_pos", None, pointer, whole, ctypes.POINTER(Rectangle))
get_baseline = declare(pango, "pango_layout_get_baseline", whole, pointer)
get_pixel_size = declare(pango, "pango_layout_get_pixel_size", None, pointer, ctypes.POINTER(whole), ctypes.POINTER(whole))
font_from_string = declare(pango, "pango_font_description_from_string", pointer, ctypes.c_char_p)
unref = declare(gobject, "g_object_unref", None, pointer)
UNIT = 1024
PIXELS_A_POINT = 96 / 72

# Families of the desktop's applications and how often: those of the looks that training shows, and no other.
FONTS = ["DejaVu Sans Bold"] * 5 + ["DejaVu Sans Mono Bold"] * 2 + ["DejaVu Sans"] * 2 + ["DejaVu Sans Mono"]
# Points: the large look is 14, the compact one 12, the file manager 13, dialogs of the editor and the sheet 11, menus 8 and 9.
SIZES = [14] * 8 + [13] * 3 + [12] * 4 + [11] * 2 + [10, 9]
# Ground and ink of GTK's light theme, of its selections, of the terminal, and of the window manager's bars, menu and desktop.
COLOURS = [((246, 245, 244), (46, 52, 54))] * 5 + [((255, 255, 255), (0, 0, 0))] * 5 + [((53, 132, 228), (255, 255, 255))] * 2 + [
    ((10, 100, 164), (255, 255, 255)), ((225, 222, 219), (46, 52, 54)), ((74, 110, 140), (255, 255, 255)), ((102, 102, 102), (221, 221, 221)),
    ((51, 51, 51), (255, 255, 255)), ((85, 85, 85), (255, 255, 255))]
GROUNDS = [(74, 110, 140), (255, 255, 255), (246, 245, 244)]
LINES = [None, (200, 198, 195), (10, 98, 163)]
# As many as there is room for: a lesson costs the same however few there are.
TEXTS_A_SCREEN = 90


class Drawing:
    """A screen: rectangles by PIL, texts by Pango into the same pixels."""

    def __init__(self, width, height, rng):
        self.rng, self.width, self.height = rng, width, height
        self.image = Image.new("RGB", (width, height), rng.choice(GROUNDS))
        self.draw = ImageDraw.Draw(self.image)
        self.taken, self.texts = [], []
        self.found = {"texts": [], "boxes": [], "centres": [], "middles": []}

    def clutter(self):
        rng = self.rng
        for _ in range(rng.randint(2, 6)):
            x, y, w, h = rng.randint(-40, self.width), rng.randint(-40, self.height), rng.randint(60, 400), rng.randint(40, 300)
            self.draw.rectangle([x, y, x + w, y + h], fill=rng.choice(COLOURS)[0], outline=rng.choice(LINES))

    def free(self, box):
        return (box[0] >= 0 and box[1] >= 0 and box[2] <= self.width and box[3] <= self.height and
                all(box[2] <= t[0] or t[2] <= box[0] or box[3] <= t[1] or t[3] <= box[1] for t in self.taken))

    def place(self, measured, colours, at=None, pad=None):
        """Takes a free place for a text and remembers to draw it there; False when there is none."""
        rng, w, h = self.rng, measured.width, measured.height
        px, py = pad or (rng.choice([2, 4, 8]), rng.choice([0, 1, 3]))
        for _ in range(1 if at else 8):
            x, y = at or (rng.randint(2, max(3, self.width - w - 2)), rng.randint(1, max(2, self.height - h - 1)))
            box = (x - px, y - py, x + w + px, y + h + py)
            if self.free(box):
                self.taken.append(box)
                self.draw.rectangle(box, fill=colours[0], outline=rng.choice(LINES) if at is None else None)
                self.texts.append((measured, x, y, colours[1]))
                return True
        return False

    def finish(self):
        data = bytearray(self.image.convert("RGBA").tobytes("raw", "BGRA"))
        pixels = (ctypes.c_char * len(data)).from_buffer(data)
        surface = surface_for_data(ctypes.addressof(pixels), 1, self.width, self.height, self.width * 4)
        context = context_create(surface)
        for measured, x, y, ink in self.texts:
            layout = layout_create(context)
            measured.prepare(layout)
            set_colour(context, ink[0] / 255, ink[1] / 255, ink[2] / 255)
            move_to(context, x, y)
            show_layout(context, layout)
            unref(layout)
            self.found["texts"].append(measured.index)
            self.found["boxes"].append([x // 2, y // 2, (x + measured.width + 1) // 2, (y + measured.height + 1) // 2])
            self.found["centres"].append([round((x + c) / 2, 2) for c in measured.centres])
            self.found["middles"].append(round((y + measured.middle) / 2, 2))
        surface_flush(surface)
        context_destroy(context)
        surface_destroy(surface)
        image = Image.frombytes("RGBA", (self.width, self.height), bytes(data), "raw", "BGRA")
        return image.convert("RGB").convert("L").reduce(2).tobytes()


class Measured:
    """A text in a font, and where its characters are."""

    def __init__(self, layout, index, text, font, points):
        self.index, self.encoded, self.font = index, text.encode(), font
        self.prepare(layout)
        w, h = whole(), whole()
        get_pixel_size(layout, ctypes.byref(w), ctypes.byref(h))
        self.width, self.height = w.value, h.value
        self.middle = get_baseline(layout) / UNIT - 0.27 * points * PIXELS_A_POINT
        self.centres, at = [], 0
        for c in text:
            box = Rectangle()
            index_to_pos(layout, at, ctypes.byref(box))
            self.centres.append((box.x + box.width / 2) / UNIT)
            at += len(c.encode())

    def prepare(self, layout):
        set_font(layout, self.font)
        set_text(layout, self.encoded, len(self.encoded))


def fill(drawing, texts, rng, layout, fonts, families, sizes):
    def some():
        family, points = rng.choice(families), rng.choice(sizes)
        return family, points

    def measure(index, family, points):
        key = f"{family} {points}"
        if key not in fonts:
            fonts[key] = font_from_string(key.encode())
        return Measured(layout, index, texts[index], fonts[key], points)

    order = rng.sample(range(len(texts)), min(len(texts), TEXTS_A_SCREEN))
    # Lists and paragraphs: lines of one font under each other.
    for _ in range(rng.randint(2, 5)):
        family, points = some()
        n, pitch = rng.randint(4, 10), rng.choice([0, 0, 2, 6, 10])
        ground = rng.choice(COLOURS[:10])
        x, y = rng.randint(6, drawing.width - 120), rng.randint(2, drawing.height - 120)
        for _ in range(n):
            if not order:
                return
            m = measure(order.pop(), family, points)
            drawing.place(m, rng.choice(COLOURS) if rng.random() < 0.2 else ground, at=(x, y + pitch // 2), pad=(4, pitch // 2))
            y += m.height + 2 * (pitch // 2) + 1
    while order:
        drawing.place(measure(order.pop(), *some()), rng.choice(COLOURS))


def main():
    ask = json.load(sys.stdin)
    rng = random.Random(ask["seed"])
    scratch = ctypes.create_string_buffer(4 * 8 * 8)
    surface = surface_for_data(ctypes.addressof(scratch), 1, 8, 8, 32)
    context = context_create(surface)
    layout, fonts = layout_create(context), {}
    for _ in range(ask["count"]):
        drawing = Drawing(ask["width"], ask["height"], rng)
        drawing.clutter()
        fill(drawing, ask["texts"], rng, layout, fonts, ask.get("fonts") or FONTS, ask.get("sizes") or SIZES)
        pixels = drawing.finish()
        sys.stdout.buffer.write(json.dumps(drawing.found).encode() + b"\n")
        sys.stdout.buffer.write(pixels)


main()

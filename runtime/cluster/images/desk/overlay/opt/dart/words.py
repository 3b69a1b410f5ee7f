"""Screens full of words at known places, drawn with the desktop's own fonts: what the embedded policy learns to read from.

stdin: {"seed": n, "count": n, "words": ["Save", ...], "width": 640, "height": 400}
stdout, per screen: one JSON line {"words": [index, ...], "boxes": [[x0, y0, x1, y1], ...]} in half-size pixels, then width*height/4 bytes of luminance.
"""
import json
import random
import sys

from PIL import Image, ImageDraw, ImageFont

FONTS = "/usr/share/fonts/truetype/dejavu/"
# Ground and ink of GTK's Adwaita, of selections, of the window manager's bars, and a few others.
COLOURS = [((246, 245, 244), (46, 52, 54))] * 5 + [((255, 255, 255), (0, 0, 0))] * 5 + [((53, 132, 228), (255, 255, 255))] * 2 + [
    ((10, 98, 163), (255, 255, 255)), ((50, 50, 50), (230, 230, 230)), ((225, 222, 219), (46, 52, 54)), ((0, 0, 0), (230, 230, 230))]


def main():
    ask = json.load(sys.stdin)
    rng = random.Random(ask["seed"])
    width, height, words = ask["width"], ask["height"], ask["words"]
    fonts = [ImageFont.truetype(FONTS + name, size) for name, size in (
        ("DejaVuSans-Bold.ttf", 19), ("DejaVuSans-Bold.ttf", 19), ("DejaVuSans-Bold.ttf", 18), ("DejaVuSans-Bold.ttf", 20), ("DejaVuSans-Bold.ttf", 17), ("DejaVuSans-Bold.ttf", 16), ("DejaVuSans-Bold.ttf", 15),
        ("DejaVuSans.ttf", 19), ("DejaVuSans.ttf", 18), ("DejaVuSansMono.ttf", 18))]
    out = sys.stdout.buffer
    for _ in range(ask["count"]):
        image = Image.new("RGB", (width, height), rng.choice([(76, 110, 140), (255, 255, 255), (246, 245, 244)]))
        draw = ImageDraw.Draw(image)
        for _ in range(rng.randint(2, 6)):
            x, y, w, h = rng.randint(-40, width), rng.randint(-40, height), rng.randint(60, 400), rng.randint(40, 300)
            draw.rectangle([x, y, x + w, y + h], fill=rng.choice(COLOURS)[0], outline=rng.choice([None, (10, 98, 163), (200, 198, 195)]))
        taken, boxes, used = [], [], []
        for word in rng.sample(range(len(words)), min(len(words), 40)):
            font = rng.choice(fonts)
            ground, ink = rng.choice(COLOURS)
            left, top, right, bottom = font.getbbox(words[word])
            w, h = right, max(bottom, 19)
            for _ in range(6):
                x, y = rng.randint(2, max(3, width - w - 2)), rng.randint(2, height - h - 2)
                px, py = rng.choice([2, 4, 8, 24]), rng.choice([1, 3, 5])
                box = (x - px, y - py, x + w + px, y + h + py)
                if all(box[2] <= t[0] or t[2] <= box[0] or box[3] <= t[1] or t[3] <= box[1] for t in taken):
                    taken.append(box)
                    draw.rectangle(box, fill=ground, outline=rng.choice([None, (200, 198, 195)]))
                    draw.text((x, y), words[word], font=font, fill=ink)
                    used.append(word)
                    boxes.append([x // 2, (y + top) // 2, (x + w + 1) // 2, (y + bottom + 1) // 2])
                    break
        small = image.convert("L").reduce(2)
        out.write(json.dumps({"words": used, "boxes": boxes}).encode() + b"\n")
        out.write(small.tobytes())


main()

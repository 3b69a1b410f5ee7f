"""Writes one small file of each format that OSWorld's tasks download, into the folder that is named. They are made here, not OSWorld's:
they show that a task can be set up and judged, and say nothing of how hard it is."""
import io, json, os, struct, sys, tarfile, wave, zipfile

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
at = lambda ext: os.path.join(out, 'made.' + ext)


def write(ext, data):
    with open(at(ext), 'wb') as f:
        f.write(data if isinstance(data, bytes) else data.encode())


import docx, openpyxl, pptx
from PIL import Image, ImageDraw
from docx.shared import RGBColor
from pptx.util import Inches

book = openpyxl.Workbook()
for row in (('Name', 'Amount', 'Date'), ('Ada', 12, '2024-01-05'), ('Grace', 30, '2024-02-11'), ('Alan', 7, '2024-03-02')):
    book.active.append(row)
book.active.title = 'Sheet1'
book.create_sheet('Sheet2').append(('Total', 49))
book.save(at('xlsx'))
doc = docx.Document()
for text in ('A heading', 'The first paragraph has a few words.', 'The second one has others.', 'H2O and CO2 are formulas.'):
    doc.add_paragraph(text)
table = doc.add_table(rows=2, cols=2)
for i, cell in enumerate(c for row in table.rows for c in row.cells):
    cell.paragraphs[0].add_run('word').font.color.rgb = RGBColor(255 if i % 2 else 0, 0, 0)
doc.save(at('docx'))
show = pptx.Presentation()
for n in range(6):
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = 'Slide %d' % (n + 1)
    slide.placeholders[1].text = 'Some words'
picture = Image.new('RGB', (320, 240), (200, 180, 90))
ImageDraw.Draw(picture).polygon(((100, 60), (220, 60), (160, 180)), fill=(250, 250, 0))
for ext, kind in (('png', 'PNG'), ('jpg', 'JPEG'), ('jpeg', 'JPEG'), ('gif', 'GIF'), ('bmp', 'BMP'), ('webp', 'WEBP'), ('tiff', 'TIFF')):
    picture.save(at(ext), kind)
slide.shapes.add_picture(at('png'), Inches(1), Inches(1))
show.save(at('pptx'))
sound = io.BytesIO()
with wave.open(sound, 'wb') as w:
    w.setnchannels(1), w.setsampwidth(2), w.setframerate(8000)
    w.writeframes(b''.join(struct.pack('<h', (i * 331) % 20000 - 10000) for i in range(8000)))
for ext in ('wav', 'mp3', 'mp4', 'flac', 'm4a', 'ogg'):
    write(ext, sound.getvalue())
picture.save(at('pdf'), 'PDF')
write('csv', 'name,amount\nAda,12\nGrace,30\n')
write('txt', 'first line\nsecond line\n')
write('md', '# A title\n\nwords\n')
write('py', 'def solve():\n    return 1\n')
write('html', '<html><head><title>made</title></head><body><p class="x">words</p></body></html>')
write('json', json.dumps({'a': 1, 'editor.tabSize': 4}))
write('yaml', 'a: 1\n')
write('bib', '@article{a, title={A}}\n')
write('eml', 'From: a@example.org\nTo: b@example.org\nSubject: x\n\nwords\n')
write('xcf', b'gimp xcf file\0')
for ext in ('zip', 'epub', 'crx', 'ods', 'odt', 'odp'):
    z = io.BytesIO()
    with zipfile.ZipFile(z, 'w') as f:
        f.writestr('a.txt', 'words\n')
        f.writestr('mimetype', 'application/epub+zip')
    write(ext, z.getvalue())
for ext in ('tar', 'gz', 'tgz', 'xz'):
    t = io.BytesIO()
    with tarfile.open(fileobj=t, mode={'tar': 'w', 'xz': 'w:xz'}.get(ext, 'w:gz')) as f:
        info = tarfile.TarInfo('a.txt')
        info.size = 6
        f.addfile(info, io.BytesIO(b'words\n'))
    write(ext, t.getvalue())

"""Writes one small file of each format that OSWorld's tasks download, into the folder that is named: FOLDER/made.EXT, and FOLDER/gold.EXT
with other contents, for what a task is compared with. They are made here, not OSWorld's: they show that a task can be set up and judged, and
say nothing of how hard it is."""
import io, json, os, struct, subprocess, sys, tarfile, wave, zipfile

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
gold = sys.argv[2:] == ['gold']
at = lambda ext: os.path.join(out, ('gold.' if gold else 'made.') + ext)
n, words = (5, 'others') if gold else (0, 'words')


def write(ext, data):
    with open(at(ext), 'wb') as f:
        f.write(data if isinstance(data, bytes) else data.encode())


import cv2, docx, fitz, numpy, openpyxl, openpyxl.chart, pptx
from PIL import Image, ImageDraw
from docx.shared import RGBColor
from pptx.util import Inches

book = openpyxl.Workbook()
for row in (('Name', 'Amount', 'Date'), ('Ada', 12 + n, '2024-01-05'), ('Grace', 30 + n, '2024-02-11'), ('Alan', 7, '2024-03-02')):
    book.active.append(row)
book.active.title = 'Sheet1'
second = book.create_sheet('Sheet2')
second.append(('Total', 49 + n))
if gold:
    chart = openpyxl.chart.BarChart()
    chart.title = 'Amounts'
    chart.add_data(openpyxl.chart.Reference(book['Sheet1'], min_col=2, min_row=1, max_row=4), titles_from_data=True)
    second.add_chart(chart, 'D2')
book.save(at('xlsx'))
picture = Image.new('RGB', (320, 240), (40, 90, 160) if gold else (200, 180, 90))
ImageDraw.Draw(picture).polygon(((100, 60), (220, 60), (160, 180)), fill=(250, 250, 0))
for ext, kind in (('png', 'PNG'), ('jpg', 'JPEG'), ('jpeg', 'JPEG'), ('gif', 'GIF'), ('bmp', 'BMP'), ('webp', 'WEBP'), ('tiff', 'TIFF')):
    picture.save(at(ext), kind)
doc = docx.Document()
for text in ('A heading', 'The first paragraph has a few %s.' % words, 'The second one has others.', 'H2O and CO2 are formulas.'):
    doc.add_paragraph(text)
table = doc.add_table(rows=2, cols=2)
for i, cell in enumerate(c for row in table.rows for c in row.cells):
    cell.paragraphs[0].add_run(words[:-1]).font.color.rgb = RGBColor(255 if i % 2 else 0, 0, 0)
# Records of trains, one of them twice but in gold; a list of references; a picture in gold alone.
for record in ('06:00:01,K1,ADM,1', '06:05:10,K2,CEN,2') if gold else ('06:00:01,K1,ADM,1', '06:05:10,K2,CEN,2', '06:07:30,K1,CEN,1'):
    doc.add_paragraph(record)
if gold:
    doc.add_picture(at('png'))
doc.add_paragraph('References')
doc.add_paragraph('Lovelace, A. (1843). Notes on the analytical engine. Taylor.' if gold else 'grace hopper 1952: "compilers", acm!')
doc.save(at('docx'))
show = pptx.Presentation()
for i in range(6 - n // 5):
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = 'Slide %d' % (i + 1)
    slide.placeholders[1].text = 'Some ' + words
slide.shapes.add_picture(at('png'), Inches(1), Inches(1))
show.save(at('pptx'))
sound = io.BytesIO()
with wave.open(sound, 'wb') as w:
    w.setnchannels(1), w.setsampwidth(2), w.setframerate(8000)
    w.writeframes(b''.join(struct.pack('<h', (i * (331 + 60 * n)) % 20000 - 10000) for i in range(8000)))
for ext in ('wav', 'mp3', 'flac', 'm4a', 'ogg'):
    write(ext, sound.getvalue())
video = cv2.VideoWriter(at('mp4'), cv2.VideoWriter_fourcc(*'mp4v'), 10, (320, 240))
for i in range(30):
    frame = numpy.full((240, 320, 3), 40, numpy.uint8)
    x, y = (20 + 5 * i, 30) if gold else (160, 200 - 5 * i)
    cv2.rectangle(frame, (x, y), (x + 90, y + 40), (20, 220, 240), -1)
    video.write(frame)
video.release()
pdf = fitz.open()
pdf.new_page().insert_text((72, 96), 'A page with a few %s.' % words)
pdf.save(at('pdf'))
write('csv', 'name,amount\nAda,%d\nGrace,30\n' % (12 + n))
write('txt', 'first line\nsecond %s\n' % words)
write('md', '# A title\n\n%s\n' % words)
write('py', 'def solve():\n    return %d\n' % (1 + n))
write('html', '<html><head><title>made</title></head><body><p class="x">%s</p></body></html>' % words)
write('json', json.dumps({'a': 1 + n, 'editor.tabSize': 4}))
write('yaml', 'a: %d\n' % (1 + n))
write('bib', '@article{a, title={A %s}}\n' % words)
write('eml', 'From: a@example.org\nTo: b@example.org\nSubject: x\n\n%s\n' % words)
write('xcf', b'gimp xcf file\0')
office = 'urn:oasis:names:tc:opendocument:xmlns:office:1.0'
table = 'urn:oasis:names:tc:opendocument:xmlns:table:1.0'
paragraph = '<text:p xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">%s</text:p>' % words
for ext, kind, body in (
    ('odt', 'text', paragraph),
    ('ods', 'spreadsheet', '<t:table xmlns:t="%s" t:name="Sheet1"><t:table-row><t:table-cell>%s</t:table-cell></t:table-row></t:table>' % (table, paragraph)),
    ('odp', 'presentation', '<d:page xmlns:d="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" d:name="Slide 1" d:master-page-name=""/>'),
):
    mime = 'application/vnd.oasis.opendocument.' + kind
    entries = ''.join('<m:file-entry m:full-path="%s" m:media-type="%s"/>' % e for e in (('/', mime), ('content.xml', 'text/xml')))
    with zipfile.ZipFile(at(ext), 'w') as f:
        f.writestr('mimetype', mime)
        f.writestr('META-INF/manifest.xml', '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">%s</m:manifest>' % entries)
        f.writestr('content.xml', '<o:document-content xmlns:o="%s" o:version="1.3"><o:body><o:%s>%s</o:%s></o:body></o:document-content>' % (office, kind, body, kind))
for ext in ('zip', 'epub', 'crx'):
    z = io.BytesIO()
    with zipfile.ZipFile(z, 'w') as f:
        f.writestr('a.txt', words + '\n')
        f.writestr('mimetype', 'application/epub+zip')
    write(ext, z.getvalue())
# OSWorld's Thunderbird tasks unpack a profile of this name.
profile = '.thunderbird/t5q2a5hp.default-release'
packed = {
    'a.txt': words + '\n',
    '.thunderbird/profiles.ini': '[Profile0]\nName=default-release\nIsRelative=1\nPath=t5q2a5hp.default-release\nDefault=1\n\n[General]\nStartWithLastProfile=1\nVersion=2\n',
    profile + '/prefs.js': 'user_pref("mail.rights.version", 1);\nuser_pref("mail.provider.suppress_dialog_on_startup", true);\n',
}
for ext in ('tar', 'gz', 'tgz', 'xz'):
    t = io.BytesIO()
    with tarfile.open(fileobj=t, mode={'tar': 'w', 'xz': 'w:xz'}.get(ext, 'w:gz')) as f:
        for name, text in packed.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            f.addfile(info, io.BytesIO(text.encode()))
    write(ext, t.getvalue())
if not gold:
    subprocess.run([sys.executable, __file__, out, 'gold'], check=True)

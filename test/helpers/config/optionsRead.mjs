// Which options of the run file the runtime reads, by the types: every property access and every destructuring whose
// property is declared in the schema's own object. A process of its own: type-checking keeps one busy for long.
// argv[2]: all options as JSON, paths with dots. Prints those that are read, as JSON.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const options = JSON.parse(process.argv[2]),
  names = new Set(options.flatMap((o) => o.split('.')));
const files = readdirSync('runtime', { recursive: true, encoding: 'utf8' })
  .filter((f) => f.endsWith('.ts'))
  .map((f) => join('runtime', f).replaceAll('\\', '/'));
const { config } = ts.readConfigFile('tsconfig.json', (f) => readFileSync(f, 'utf8')),
  parsed = ts.parseJsonConfigFileContent(config, ts.sys, '.'),
  program = ts.createProgram(files, { ...parsed.options, noEmit: true }),
  checker = program.getTypeChecker();
const ofSchema = (f) => f.replaceAll('\\', '/').includes('runtime/config/');

/** Where a property was declared, wherever its type went since: Pick, Readonly and spreads keep it. */
const places = (symbol) =>
  (symbol?.declarations ?? [])
    .filter((d) => ofSchema(d.getSourceFile().fileName))
    .map((d) => `${d.getSourceFile().fileName}:${d.pos}`);

/** Paths of the options by where they are declared. */
function declared() {
  const schema = program.getSourceFiles().find((f) => f.fileName.endsWith('runtime/config/schema.ts')),
    alias = checker.getExportsOfModule(checker.getSymbolAtLocation(schema)).find((s) => s.name === 'RunConfig'),
    out = new Map();
  const walk = (type, at) => {
    for (const p of type.getProperties()) {
      const path = [...at, p.name].join('.');
      for (const place of places(p)) out.set(place, [...(out.get(place) ?? []), path]);
      if (options.some((o) => o.startsWith(`${path}.`)))
        walk(checker.getNonNullableType(checker.getTypeOfSymbol(p)), [...at, p.name]);
    }
  };
  walk(checker.getDeclaredTypeOfSymbol(alias), []);
  return out;
}

const paths = declared(),
  read = new Set();
const note = (symbol) => {
  for (const p of places(symbol)) for (const path of paths.get(p) ?? []) read.add(path);
};
const visit = (n) => {
  if (ts.isPropertyAccessExpression(n) && names.has(n.name.text)) note(checker.getSymbolAtLocation(n.name));
  else if (ts.isBindingElement(n) && ts.isObjectBindingPattern(n.parent)) {
    const name = (n.propertyName ?? n.name).getText();
    if (names.has(name)) note(checker.getTypeAtLocation(n.parent).getProperty(name));
  }
  ts.forEachChild(n, visit);
};
for (const f of files) if (!ofSchema(f)) visit(program.getSourceFile(f));
process.stdout.write(JSON.stringify([...read].sort()));

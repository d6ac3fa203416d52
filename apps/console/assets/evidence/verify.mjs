// Verifies an evidence package, offline: node verify.mjs [FOLDER] [ANCHORS]
// Needs Node 18 or newer, and nothing else. README.txt says what the result means.
//
// A line of log-YYYY-MM.txt is position, TAB, hash, TAB, entry:
//   hash = SHA-256(hash of the line before, then SHA-256(entry))
// A line of names-YYYY-MM.txt is position, TAB, salt, TAB, names. The entry of that position ends with
//   SHA-256(salt, then names)
// ANCHORS is a text with month, SPACE, position, SPACE, hash of each anchor, such as a monthly email that was saved.
// Hashes and salts are hexadecimal.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';

const [folder = '.', anchorsFile] = process.argv.slice(2);
// Each byte is one character, so that nothing is decoded: hashes are of bytes.
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part, 'latin1'), createHash('sha256')).digest();
const read = (file) => readFileSync(path.join(folder, file));
const readLines = (bytes) =>
  bytes
    .toString('latin1')
    .split('\n')
    .filter((line) => line !== '');
const manifest = JSON.parse(read('manifest.json').toString('utf8'));

let faults = 0;
function fault(text) {
  faults += 1;
  console.log(`NOT INTACT: ${text}`);
}

const anchors = manifest.anchors.map(({ month, position, hash }) => ({ month, position, hash, from: 'manifest.json' }));
if (anchorsFile !== undefined) {
  // An email may break its lines with "=", and has a text twice.
  const text = readFileSync(anchorsFile, 'utf8').replace(/=\r?\n/g, '');
  const found = new Set(text.match(/\b[0-9]{4}-[0-9]{2} [0-9]+ [0-9a-f]{64}\b/g));
  if (found.size === 0) fault(`${anchorsFile} has no anchor: month, position and hash`);
  for (const anchor of found) {
    const [month, position, hash] = anchor.split(' ');
    anchors.push({ month, position: Number(position), hash, from: anchorsFile });
  }
}

for (const { file, sha256: expected } of manifest.files)
  if (sha256(read(file)).toString('hex') !== expected) fault(`${file} is not the file that manifest.json names`);

const checkedAnchors = new Set();
for (const chain of manifest.months) {
  const names = new Map();
  for (const [index, line] of readLines(read(chain.names)).entries()) {
    const [position, salt = '', text = ''] = line.split('\t');
    if (names.has(position)) fault(`${chain.names}, line ${index + 1}: position ${position} is there twice`);
    names.set(position, { line: index + 1, digest: sha256(Buffer.from(salt, 'hex'), text).toString('hex') });
  }
  const ofMonth = anchors.filter(({ month }) => month === chain.month);
  const isStart = sha256(`audit log ${manifest.organizationId} ${chain.month}`).toString('hex') === chain.hashBefore;
  if (chain.from === 1 && !isStart) fault(`${chain.month} does not begin as a log of this organization`);
  let hash = Buffer.from(chain.hashBefore, 'hex');
  let position = chain.from - 1;
  let isBroken = false;
  for (const [index, line] of readLines(read(chain.log)).entries()) {
    const [stated, given, entry = '', ...more] = line.split('\t');
    hash = sha256(hash, sha256(entry));
    position += 1;
    const hex = hash.toString('hex');
    if (stated !== String(position) || given !== hex || more.length > 0) {
      fault(`${chain.log}, line ${index + 1} (position ${position}): changed, removed, added or moved`);
      isBroken = true;
      break;
    }
    const named = names.get(stated);
    names.delete(stated);
    if (named !== undefined && !entry.endsWith(`"${named.digest}"]`))
      fault(`${chain.names}, line ${named.line}: not the names of the entry at position ${position}`);
    for (const anchor of ofMonth.filter((one) => one.position === position)) {
      checkedAnchors.add(anchor);
      if (anchor.hash !== hex) fault(`${chain.month}, position ${position}: differs from the anchor of ${anchor.from}`);
    }
  }
  if (isBroken) continue;
  if (position !== chain.to || hash.toString('hex') !== chain.hashAfter)
    fault(`${chain.log} ends at position ${position}, and not as manifest.json says: its last lines were changed`);
  for (const [at, { line }] of names) fault(`${chain.names}, line ${line}: there is no entry at position ${at}`);
  console.log(`${chain.month}: positions ${chain.from} to ${position}, end ${hash.toString('hex')}`);
}
const others = anchors.filter((anchor) => !checkedAnchors.has(anchor));
console.log(`anchors compared: ${checkedAnchors.size}, of other months or positions: ${others.length}`);
console.log(`manifest.json: ${sha256(read('manifest.json')).toString('hex')}`);
console.log(faults === 0 ? 'INTACT' : `NOT INTACT: ${faults} ${faults === 1 ? 'fault' : 'faults'}`);
process.exitCode = faults === 0 ? 0 : 1;

import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';

/**
 * Copies a file and creates its folders; its mode is `0644`, or `0755` for a program. Links are
 * followed.
 */
export function copy(from: string, to: string, mode: 0o644 | 0o755 = 0o644): void {
  mkdirSync(path.dirname(to), { recursive: true });
  copyFileSync(from, to);
  chmodSync(to, mode);
}

/** Writes a text file and creates its folders. */
export function write(to: string, text: string): void {
  mkdirSync(path.dirname(to), { recursive: true });
  writeFileSync(to, text, { mode: 0o644 });
}

export const readJson = <T>(folder: string, name: string): T =>
  JSON.parse(readFileSync(path.join(folder, name), 'utf8'));

/**
 * Lists the files below a folder as sorted paths with `/`, without those of folders that
 * `isEntered` rejects.
 */
export function listFiles(folder: string, isEntered: (below: string) => boolean = () => true, below = ''): string[] {
  return readdirSync(path.join(folder, below), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const name = below === '' ? entry.name : `${below}/${entry.name}`;
      if (!entry.isDirectory()) return [name];
      return isEntered(name) ? listFiles(folder, isEntered, name) : [];
    });
}

/**
 * Sets the times of everything below a folder, and the mode `0755` of folders, so that the packed
 * tree depends on contents only. Returns the SHA-256 of the tree (each path with its kind, mode and
 * contents) and the bytes of all files.
 */
export function normalizeTree(folder: string, epochSeconds: number): { sha256: string; bytes: number } {
  const hash = createHash('sha256');
  let bytes = 0;
  const normalize = (below: string): void => {
    const file = path.join(folder, below);
    const stat = lstatSync(file);
    if (stat.isSymbolicLink()) hash.update(`link ${below}\0${readlinkSync(file)}\0`);
    else if (stat.isDirectory()) {
      const mode = stat.mode & 0o1000 ? 0o1777 : 0o755;
      chmodSync(file, mode);
      hash.update(`folder ${below}\0${mode.toString(8)}\0`);
      for (const name of readdirSync(file).sort()) normalize(below === '' ? name : `${below}/${name}`);
    } else {
      const contents = readFileSync(file);
      bytes += contents.length;
      hash.update(`file ${below}\0${(stat.mode & 0o777).toString(8)}\0${contents.length}\0`).update(contents);
    }
    lutimesSync(file, epochSeconds, epochSeconds);
  };
  normalize('');
  return { sha256: hash.digest('hex'), bytes };
}

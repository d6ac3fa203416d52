import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { brokenLinks } from '#test/documents.ts';
import { filesOfRow, listPaths } from './files-of-row.ts';

const root = path.join(import.meta.dirname, '../..');
const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n');
/** Documents except SECURITY.md, whose paths are below `test`, and which has a separate test. */
const pages = tracked.filter((file) => /^(docs\/.*|[A-Z]+)\.md$/.test(file) && file !== 'SECURITY.md');

describe('the documents', () => {
  it('name files and folders that exist', () => {
    const named = pages.flatMap((page) =>
      listPaths(readFileSync(path.join(root, page), 'utf8')).map((file) => `${page}: ${file}`),
    );
    expect(named.length).toBeGreaterThan(50);
    expect(named.filter((entry) => !existsSync(path.join(root, entry.split(': ')[1] ?? '')))).toEqual([]);
  });

  it('name files of a table row relative to the folder of the last full path before them', () => {
    const text = readFileSync(path.join(root, 'docs/architecture.md'), 'utf8');
    const files = text
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .flatMap(filesOfRow);
    expect(files.length).toBeGreaterThan(50);
    expect(files.filter((file) => !tracked.includes(file))).toEqual([]);
  });

  it('have links that lead to a file and a heading', () => {
    const broken = pages.flatMap((page) => {
      const file = path.join(root, page);
      return brokenLinks({ file, text: readFileSync(file, 'utf8') }).map((link) => `${page}: ${link}`);
    });
    expect(broken).toEqual([]);
  });
});

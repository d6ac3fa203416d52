import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';

const root = path.join(import.meta.dirname, '../..');

/** Code in a page: a block, or what stands between two backticks. Lines that continue are one. */
export interface PageCode {
  file: string;
  code: string;
  isBlock: boolean;
}

/** Returns the code of every Markdown page of the repository. */
export function listCode(): PageCode[] {
  const pages = execFileSync('git', ['ls-files', '-z', '*.md'], { cwd: root, encoding: 'utf8' }).split('\0');
  return pages.filter(Boolean).flatMap((file) => {
    const text = readFileSync(path.join(root, file), 'utf8').replace(/\\\n\s*/g, ' ');
    // Odd parts are blocks.
    return text.split(/^\s*```.*$/m).flatMap((part, index): PageCode[] =>
      index % 2 === 1
        ? [{ file, code: part, isBlock: true }]
        : [...part.matchAll(/`([^`]+)`/g)].map(([, code = '']) => ({
            file,
            code: code.replace(/\s+/g, ' '),
            isBlock: false,
          })),
    );
  });
}

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const root = path.join(import.meta.dirname, '../..');

/** A page for operators: its path and its text. */
export interface Page {
  file: string;
  text: string;
}

/** Returns the fenced blocks of a page in one language, without the indentation of their list. */
export function listBlocks({ text }: Page, language: string): string[] {
  const found = text.matchAll(new RegExp(`^( *)\`\`\`${language}\\n([\\s\\S]*?)^ *\`\`\``, 'gm'));
  return [...found].map(([, indent = '', body = '']) => body.replace(new RegExp(`^${indent}`, 'gm'), ''));
}

/**
 * Returns every command in a page's shell blocks, on one line each, including those within `$(…)`
 * and behind a pipe.
 */
export function listCommands(page: Page): string[] {
  const lines = listBlocks(page, 'sh')
    .join('\n')
    .replace(/\\\n\s*/g, ' ')
    .split('\n');
  return lines
    .flatMap((line) => line.replace(/ #.*/, '').split(/\$\(| \| |&&(?: |$)|; /))
    .map((one) => one.trim())
    .filter((one) => /^[a-z]+ [a-z-]/.test(one));
}

/** Returns the runbooks of a chart by alert. */
export function readRunbooks(name = 'org-api'): Map<string, Page> {
  const folder = path.join(root, 'charts', name, 'runbooks');
  const files = readdirSync(folder).filter((name) => name !== 'README.md');
  return new Map(files.map((name) => [name.replace(/\.md$/, ''), readPage(path.join(folder, name))]));
}

/** Returns the pages of the operations guide: the index, then the others by name. */
export function readGuide(): Page[] {
  const folder = path.join(root, 'docs/operations');
  const pages = readdirSync(folder).sort();
  return [path.join(root, 'charts/README.md'), ...pages.map((name) => path.join(folder, name))].map(readPage);
}

export function readPage(file: string): Page {
  return { file, text: readFileSync(file, 'utf8') };
}

/** Returns the links of a page whose file or heading does not exist. */
export function brokenLinks({ file, text }: Page): string[] {
  const links = [...text.matchAll(/\]\(([^)#\s]*)(?:#([^)]*))?\)/g)].filter(
    ([, target = '']) => !/^https?:/.test(target),
  );
  return links.flatMap(([link, target = '', anchor]) => {
    const other = target === '' ? file : path.resolve(path.dirname(file), target);
    if (!existsSync(other)) return [link];
    return anchor === undefined || listAnchors(readFileSync(other, 'utf8')).includes(anchor) ? [] : [link];
  });
}

function listAnchors(text: string): string[] {
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

import { readFileSync } from 'node:fs';
import path from 'node:path';

const document = readFileSync(path.join(import.meta.dirname, '../../SECURITY.md'), 'utf8');
const [, section = ''] = document.split('## What each process may connect to\n');
const table = (section.split('\n## ')[0] ?? '').split('\n').filter((line) => /^\| (?!Process|---)/.test(line));

/** What each process may connect to: the list of SECURITY.md. */
export const connections: ReadonlyMap<string, readonly string[]> = new Map(
  table.map((line) => {
    const [, name = '', servers = ''] = line.split('|').map((cell) => cell.trim());
    return [name, servers.split(', ')];
  }),
);

/** Returns the name of a process in that list, from the folder of its app. */
export const getProcessName = (folder: string): string => (folder === 'migrate' ? 'migrations' : folder);

/** Returns what a process may connect to. @throws Error when SECURITY.md does not list it. */
export function getConnections(name: string): readonly string[] {
  const servers = connections.get(name);
  if (servers === undefined) throw new Error(`SECURITY.md does not list what ${name} may connect to`);
  return servers;
}

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** States of a TCP socket in /proc. */
const established = '01';
const listening = '0A';

/**
 * Returns where a process is connected to now, as `tcp address:port`, without the connections that it
 * accepted and those to itself. It includes what native code opened. Only Linux says it.
 */
export function listOpenSockets(pid: number): string[] {
  if (process.platform !== 'linux') return [];
  const inodes = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(readLink(`/proc/${pid}/fd/${name}`)) ?? [];
      return inode === undefined ? [] : [inode];
    }),
  );
  const rows = ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, 'utf8').split('\n').slice(1),
  );
  const sockets = rows.flatMap((row) => {
    const [, local = '', remote = '', state, , , , , , inode = ''] = row.trim().split(/\s+/);
    return inodes.has(inode) ? [{ local: readAddress(local), remote: readAddress(remote), state }] : [];
  });
  const own = new Set(sockets.flatMap(({ local, state }) => (state === listening ? [local.port] : [])));
  return sockets
    .filter(({ local, remote, state }) => state === established && !own.has(local.port) && !own.has(remote.port))
    .map(({ remote }) => `tcp ${remote.address}:${remote.port}`);
}

/** Reads `0100007F:1F90`: words of four bytes, each in the order of this machine, then the port. */
function readAddress(text: string): { address: string; port: number } {
  const [words = '', port = ''] = text.split(':');
  const bytes = (words.match(/.{8}/g) ?? []).flatMap((word) => [...Buffer.from(word, 'hex')].reverse());
  const isMapped = bytes.length === 4 || bytes.slice(0, 12).join() === '0,0,0,0,0,0,0,0,0,0,255,255';
  const isLoopback = bytes.slice(0, 15).every((byte) => byte === 0) && bytes[15] === 1;
  const address = isMapped ? bytes.slice(-4).join('.') : isLoopback ? '::1' : `[${words}]`;
  return { address, port: Number.parseInt(port, 16) };
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ''; // it was closed meanwhile
  }
}

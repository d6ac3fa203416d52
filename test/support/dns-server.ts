import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export type RecordType = 'A' | 'NS' | 'CNAME' | 'AAAA';
export interface DnsRecord {
  type: RecordType;
  /** An address, or a name for CNAME and NS. */
  value: string;
  /** The owner, when it differs from the queried name. */
  name?: string;
}

/** Records (none: NODATA), an error code, or null for silence. */
export type DnsAnswer = readonly DnsRecord[] | 'NXDOMAIN' | 'SERVFAIL' | 'REFUSED' | null;

const typeCodes: Record<RecordType, number> = { A: 1, NS: 2, CNAME: 5, AAAA: 28 };
const errorCodes = { SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 } as const;

/**
 * A DNS server on loopback (UDP, one question per message) with answers from the test. It closes
 * when the test ends; concurrent tests give their own `onFinished`.
 */
export async function startDnsServer(
  answer: (name: string, type: string) => DnsAnswer,
  onFinished: (end: () => void) => void = onTestFinished,
) {
  const socket = createSocket('udp4');
  const questions: string[] = [];
  socket.on('message', (message, peer) => {
    const { name, type, end } = readQuestion(message);
    questions.push(`${name} ${type}`);
    const said = answer(name, type);
    if (said === null) return;
    const records = typeof said === 'string' ? [] : said;
    const header = Buffer.from(message.subarray(0, 12));
    header.writeUInt16BE(0x8180 | (typeof said === 'string' ? errorCodes[said] : 0), 2); // a recursive answer
    header.writeUInt16BE(records.length, 6);
    header.writeUInt32BE(0, 8);
    const body = records.map((record) => writeRecord(record.name ?? name, record));
    socket.send(Buffer.concat([header, message.subarray(12, end), ...body]), peer.port, peer.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  onFinished(() => void socket.close());
  const { port } = socket.address() as AddressInfo;
  return {
    server: `127.0.0.1:${port}`,
    /** Each question so far, as `name type`; `. NS` is the question for the root. */
    questions,
  };
}

function readQuestion(message: Buffer): { name: string; type: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const code = message.readUInt16BE(at + 1);
  const type = Object.entries(typeCodes).find(([, value]) => value === code)?.[0] ?? String(code);
  return { name: labels.join('.').toLowerCase() || '.', type, end: at + 5 };
}

function writeRecord(owner: string, { type, value }: DnsRecord): Buffer {
  const data =
    type === 'A' ? Buffer.from(value.split('.').map(Number)) : type === 'AAAA' ? ipv6(value) : writeName(value);
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(typeCodes[type], 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt32BE(60, 4); // long enough for a cache to be visible
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([writeName(owner), fixed, data]);
}

function writeName(name: string): Buffer {
  const labels = name.split('.').filter((label) => label !== '');
  return Buffer.concat([
    ...labels.map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`, 'latin1')),
    Buffer.alloc(1),
  ]);
}

/** Parses an address written in full or with one `::`. */
function ipv6(text: string): Buffer {
  const [head = '', tail = ''] = text.split('::').map((half) =>
    half
      .split(':')
      .filter(Boolean)
      .map((g) => g.padStart(4, '0'))
      .join(''),
  );
  return Buffer.from(`${head}${'0'.repeat(32 - head.length - tail.length)}${tail}`, 'hex');
}

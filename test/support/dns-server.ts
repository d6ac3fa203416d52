import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type DecodedPacket, decode, encode, RECURSION_AVAILABLE } from 'dns-packet';
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
    const asked: DecodedPacket = decode(message);
    const question = asked.questions?.[0];
    if (question === undefined) throw new Error('a DNS message without a question');
    const name = question.name.toLowerCase();
    questions.push(`${name} ${question.type}`);
    const said = answer(name, question.type);
    if (said === null) return;
    const records = typeof said === 'string' ? [] : said;
    const response = encode({
      type: 'response',
      ...(asked.id === undefined ? {} : { id: asked.id }),
      flags: (asked.flags ?? 0) | RECURSION_AVAILABLE | (typeof said === 'string' ? errorCodes[said] : 0),
      questions: [question],
      // The time to live is long enough for a cache to be visible.
      answers: records.map((record) => ({ ttl: 60, name: record.name ?? name, type: record.type, data: record.value })),
    });
    socket.send(response, peer.port, peer.address);
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

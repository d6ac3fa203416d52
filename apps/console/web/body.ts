import type { IncomingMessage } from 'node:http';
import { FormRefused } from './answer.ts';

/** Bytes of a form; the largest of ours holds a description and a passkey's answer. */
const maxBytes = 64 * 1024;

const tooLarge = () => new FormRefused(413, 'This form holds more than the console takes.');

/**
 * Reads a form as browsers send it, at most 64 KiB. No field of it holds NUL, which PostgreSQL has
 * no text with and nobody types.
 *
 * @throws FormRefused when it is larger, or something else.
 */
export async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  const type = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/x-www-form-urlencoded') throw new FormRefused(415, 'The console takes forms only.');
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  const form = new URLSearchParams(Buffer.concat(chunks).toString('utf8'));
  if ([...form.values()].some((value) => value.includes('\0')))
    throw new FormRefused(422, 'A field of this form holds characters that are not text, so nothing was done.');
  return form;
}

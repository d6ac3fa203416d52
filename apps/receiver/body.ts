import type { IncomingMessage, ServerResponse } from 'node:http';

const atMostBytes = 1024 * 1024;

/**
 * Returns the raw bytes of a request, as they were signed, or null when there are more than 1 MiB.
 */
export async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= atMostBytes) chunks.push(chunk);
  }
  return bytes <= atMostBytes ? Buffer.concat(chunks) : null;
}

/** Answers with JSON. */
export function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
}

import { randomUUID } from 'node:crypto';
import type { DestinationStream } from 'pino';
import { onTestFinished } from 'vitest';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { createLog } from '#runtime/log.ts';
import { startReceiver } from '../../apps/receiver/app.ts';
import { readConfig } from '../../apps/receiver/config.ts';
import type { ReceivedEvent } from '../../apps/receiver/received.ts';

/** A running receiver with one endpoint, `harbor`, and deliveries to it in org-api's form. */
export async function setupReceiver() {
  const secret = generateSecret();
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) } as DestinationStream;
  const config = readConfig({ PORT: '0', RECEIVER_SECRETS: JSON.stringify({ harbor: [secret] }) });
  const log = createLog({ level: 'info', name: 'receiver', region: 'us', destination });
  const receiver = await startReceiver(config, log);
  onTestFinished(() => receiver.stop());

  return {
    secret,
    lines,
    receiver,
    deliver(
      options: {
        id?: string;
        secrets?: string[];
        endpoint?: string;
        ageSeconds?: number;
        body?: string;
        sequence?: number;
        event?: { type?: string; createdAt?: string; data?: Record<string, string>; test?: true };
      } = {},
    ) {
      const { id = randomUUID(), secrets = [secret], endpoint = 'harbor', ageSeconds = 0, sequence = 7 } = options;
      const event = { id, type: 'client.started', createdAt: new Date().toISOString(), ...options.event };
      const body = JSON.stringify(event);
      const timestampSeconds = Math.floor(Date.now() / 1000) - ageSeconds;
      return fetch(`${receiver.url}/hooks/${endpoint}`, {
        method: 'POST',
        headers: { ...signatureHeaders({ id, timestampSeconds, body, secrets }), 'webhook-sequence': String(sequence) },
        body: options.body ?? body,
      });
    },
    async deliveries() {
      const response = await fetch(`${receiver.url}/deliveries`);
      return ((await response.json()) as { deliveries: ReceivedEvent[] }).deliveries;
    },
    post: (at: string, body?: unknown, headers: Record<string, string> = { 'content-type': 'application/json' }) =>
      fetch(`${receiver.url}${at}`, {
        method: 'POST',
        headers,
        body: body === undefined ? null : JSON.stringify(body),
      }),
  };
}

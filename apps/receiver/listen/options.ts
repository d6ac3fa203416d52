import { parseArgs } from 'node:util';
import {
  type ChangeType,
  changeTypes,
  type EventType,
  eventDescriptions,
  eventTypes,
} from '#domain/contract/events.ts';
import { isRegion, type Region, regionCodes } from '#domain/contract/regions.ts';
import { isSecret } from '#domain/webhooks/secret.ts';
import { UsageError } from '#runtime/errors.ts';

/** The options of `npm run tool -- listen`. */
export type ListenOptions =
  | { task: 'verify'; file: string; secrets: string[]; secretFile: string | null; toleranceSeconds: number }
  | {
      task: 'listen';
      /**
       * Where events are forwarded to; null only shows them (with `trigger` alone, nothing
       * listens).
       */
      forwardTo: string | null;
      events: EventType[];
      /** Empty: a webhook of a development stack is created, and deleted at the end. */
      secrets: string[];
      /** Where the secret of that webhook is kept; null creates a new one each time. */
      secretFile: string | null;
      /** A command that starts the receiver at `forwardTo`. */
      exec: string | null;
      /** Certificates that the receiver's may be signed by, beside the usual ones. */
      caFile: string | null;
      /** 0: any free port. */
      port: number;
      trigger: ChangeType[];
      region: Region | null;
      organizationId: string | null;
      /** A folder in which each request is stored as it was sent, for `--verify`. */
      captureTo: string | null;
    };

export const usage = `Usage: npm run tool -- listen --forward-to URL [--events a,b] [--org ID] [--region us]
                         [--secret-file FILE] [--exec COMMAND] [--ca-file FILE] [--trigger TYPE]...
                         [--capture FOLDER]
       npm run tool -- listen --forward-to URL --secret whsec_... [--port N]
       npm run tool -- listen --trigger TYPE
       npm run tool -- listen --verify FILE (--secret whsec_... | --secret-file FILE) [--tolerance SECONDS]

For developers of receivers: signed events on your own machine.

  --forward-to URL   posts each event on to URL, with its headers and body as they came, and gives URL's response back
  --events a,b       only these event types (all)
  --secret SECRET    listens to every caller that knows the port, and verifies with this secret; may be
                     repeated. Without it, a webhook is created on the stack that npm start runs, and
                     deleted when this ends. No webhook is created elsewhere
  --secret-file FILE keeps the secret of that webhook in FILE, which the first run creates, so that your receiver has
                     the same secret each time
  --exec COMMAND     starts your receiver, with WEBHOOK_SECRET and the port of --forward-to as PORT in its
                     environment, waits until it listens, and ends it at the end
  --ca-file FILE     PEM certificates that sign the one of an https receiver
  --port N           where to listen on 127.0.0.1 (any free port)
  --trigger TYPE     causes an event on that stack by calls that the platform could make; may be repeated. It changes
                     only families that it made, never imported ones: client.started gives access to a new family,
                     client.ended ends the oldest access without a seat, seat.given gives that one a seat, and
                     seat.ended ends the oldest seat. What is missing for it is caused first, with its own event.
                     No call causes another type: the console sends test events of each.
                     Alone, it ends when that is done
  --org ID           the organization (the stack's first);  --region us  the region (the stack's first)
  --capture FOLDER   keeps each request in a separate file, for --verify
  --verify FILE      checks a captured request offline and names each check that fails. FILE: the request
                     as it came (headers, an empty line, the body), or JSON {"headers": {...}, "body": "..."};
                     --tolerance (300) is how old it may be, in seconds

Types:
${eventTypes.map((type) => `  ${type.padEnd(17)}${eventDescriptions[type]}`).join('\n')}
`;

const text = { type: 'string' } as const;
const texts = { type: 'string', multiple: true } as const;

/** @throws UsageError with the correct usage. */
export function readOptions(args: string[]): ListenOptions {
  const values = parse(args);
  const secrets = values.secret ?? [];
  if (!secrets.every(isSecret))
    throw new UsageError('--secret: a secret is whsec_ and 32 base64 characters; copy the whole one.');
  const secretFile = values['secret-file'] ?? null;
  if (secretFile !== null && secrets.length > 0) throw new UsageError('Give either --secret or --secret-file.');
  if (values.verify !== undefined) return readVerify(values.verify, { secrets, secretFile }, values.tolerance);
  return readListen(values, secrets);
}

function readListen(values: ReturnType<typeof parse>, secrets: string[]): ListenOptions {
  const trigger = readTypes('--trigger', values.trigger ?? [], changeTypes);
  const forwardTo = values['forward-to'] ?? null;
  if (forwardTo === null && trigger.length === 0) {
    throw new UsageError(
      'Say where events go (--forward-to URL), or what to do instead (--trigger TYPE, --verify FILE).',
    );
  }
  if (forwardTo !== null && !/^https?:$/.test(URL.parse(forwardTo)?.protocol ?? ''))
    throw new UsageError('--forward-to: give an http:// or https:// URL.');
  if (forwardTo === null && (values.exec ?? values['ca-file']) !== undefined)
    throw new UsageError('--exec and --ca-file need --forward-to, the URL of your receiver.');
  const events = readTypes('--events', values.events === undefined ? eventTypes : [values.events], eventTypes);
  return {
    task: 'listen',
    forwardTo,
    events,
    secrets,
    secretFile: values['secret-file'] ?? null,
    exec: values.exec ?? null,
    caFile: values['ca-file'] ?? null,
    trigger,
    captureTo: values.capture ?? null,
    port: readPort(values.port),
    region: readRegion(values.region),
    organizationId: readId(values.org),
  };
}

function readPort(given = '0'): number {
  const port = Number(given);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new UsageError('--port: give a port from 1 to 65535.');
}

function readRegion(region: string | undefined): Region | null {
  if (region === undefined || isRegion(region)) return region ?? null;
  throw new UsageError(`--region: use ${regionCodes.join(' or ')}.`);
}

function readId(id: string | undefined): string | null {
  if (id === undefined || /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return id ?? null;
  throw new UsageError('--org: give the organization’s id, a UUID.');
}

function readVerify(
  file: string,
  { secrets, secretFile }: { secrets: string[]; secretFile: string | null },
  tolerance = '300',
): ListenOptions {
  if (secrets.length === 0 && secretFile === null)
    throw new UsageError('--verify needs --secret, the one shown when the webhook was created, or --secret-file.');
  const toleranceSeconds = Number(tolerance);
  if (!Number.isInteger(toleranceSeconds) || toleranceSeconds < 0)
    throw new UsageError('--tolerance: give a number of seconds.');
  return { task: 'verify', file, secrets, secretFile, toleranceSeconds };
}

function readTypes<Type extends EventType>(option: string, given: readonly string[], known: readonly Type[]): Type[] {
  const types = [...new Set(given.flatMap((one) => one.split(',')).map((one) => one.trim()))];
  const unknown = types.filter((type) => !(known as readonly string[]).includes(type));
  if (unknown.some((type) => (eventTypes as string[]).includes(type)))
    throw new UsageError(
      `${option}: no call of the platform causes ${unknown.join(', ')}; the page of the webhook in the console sends ` +
        `test events of each type. Use ${known.join(', ')}.`,
    );
  if (unknown.length > 0)
    throw new UsageError(`${option}: ${unknown.join(', ')} is not an event type; use ${known.join(', ')}.`);
  return types as Type[];
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        'forward-to': text,
        events: text,
        secret: texts,
        'secret-file': text,
        exec: text,
        'ca-file': text,
        port: text,
        trigger: texts,
        org: text,
        region: text,
        capture: text,
        verify: text,
        tolerance: text,
      },
    }).values;
  } catch (error) {
    throw new UsageError(`${(error as Error).message.split('\n')[0]}`);
  }
}

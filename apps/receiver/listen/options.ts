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
import { parseOptions, rejectIgnored } from '../parse-options.ts';

/** What is done on the stack of `npm start`; null: its first region, and the first organization of that. */
interface OnStack {
  trigger: ChangeType[];
  region: Region | null;
  organizationId: string | null;
}

/** The options of `npm run tool -- listen`. */
export type ListenOptions =
  | { task: 'verify'; file: string; secrets: string[]; secretFile: string | null; toleranceSeconds: number }
  | ({ task: 'trigger' } & OnStack)
  | ({
      task: 'listen';
      /** Where events are forwarded to; null: they are printed, and accepted. */
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
      /** A folder in which each request is stored as it was sent, for `--verify`. */
      captureTo: string | null;
    } & OnStack);

const typeWidth = Math.max(...eventTypes.map((type) => type.length)) + 2;

export const usage = `Usage: npm run tool -- listen [--forward-to URL [--exec COMMAND] [--ca-file FILE]] [--events a,b]
                         [--region us|ca] [--org ID] [--secret-file FILE] [--port N]
                         [--capture FOLDER] [--trigger TYPE]...
       npm run tool -- listen --secret whsec_... [--port N] [--forward-to URL ...]
       npm run tool -- listen --trigger TYPE... [--region us|ca] [--org ID]
       npm run tool -- listen --verify FILE (--secret whsec_... | --secret-file FILE) [--tolerance SECONDS]

For developers of receivers: signed events on your own machine. It adds a webhook to the stack that npm start runs,
prints each event, whether it verifies and the response, and deletes the webhook when Ctrl-C ends it.

  --forward-to URL   posts each event to your receiver, with its headers and body as they came, and returns its
                     response. Without it, each event is answered with 204
  --exec COMMAND     starts your receiver, with WEBHOOK_SECRET and the port of --forward-to as PORT in its
                     environment, waits until it listens, and ends it at the end
  --ca-file FILE     PEM certificates of the authority that signed the one of your https receiver
  --events a,b       only these event types (all)
  --region us|ca     the region (the first of the stack)
  --org ID           the organization (the first of the region)
  --secret-file FILE keeps the secret of the webhook in FILE, which the first run creates, so that your receiver has
                     the same secret each time
  --secret SECRET    adds no webhook: verifies with this secret what any caller posts to the port; may be repeated
  --port N           the port on 127.0.0.1 (any free one)
  --capture FOLDER   keeps each request in a file of its own, for --verify
  --trigger TYPE     causes an event on that stack by calls that the platform could make; may be repeated, also with the
                     same type. It changes only families that it made, never imported ones: client.started gives access
                     to a new family, client.ended ends the oldest access without a seat, seat.given gives that one a
                     seat, and seat.ended ends the oldest seat. What is missing for it is caused first, with its own
                     event. No call causes another type: the console sends test events of each.
                     With no option but --region and --org it does not listen: it causes the events and ends, for a
                     second terminal beside one that listens
  --verify FILE      checks a captured request offline and names each check that fails. FILE: the request
                     as it came (headers, an empty line, the body), or JSON {"headers": {...}, "body": "..."}
  --tolerance N      how old that request may be, in seconds (300)

Exit codes: 0, 1 an error or a captured request that does not verify, 2 a wrong call.

Types:
${eventTypes.map((type) => `  ${type.padEnd(typeWidth)}${eventDescriptions[type]}`).join('\n')}
`;

/** @throws UsageError with the correct usage. */
export function readOptions(args: string[]): ListenOptions {
  const { values } = parseOptions({ args, options });
  rejectIgnored(values, listProblems(values));
  const secrets = values.secret ?? [];
  if (!secrets.every(isSecret))
    throw new UsageError('--secret: a secret is whsec_ and 32 base64 characters; copy the whole one.');
  const secretFile = values['secret-file'] ?? null;
  if (values.verify !== undefined) return readVerify(values.verify, { secrets, secretFile }, values.tolerance);
  const onStack: OnStack = {
    trigger: readTypes('--trigger', values.trigger ?? [], changeTypes),
    region: readRegion(values.region),
    organizationId: readId(values.org),
  };
  const ofTrigger = ['trigger', 'region', 'org'];
  if (onStack.trigger.length > 0 && Object.keys(values).every((name) => ofTrigger.includes(name)))
    return { task: 'trigger', ...onStack };
  return {
    task: 'listen',
    ...onStack,
    secrets,
    secretFile,
    forwardTo: readForwardTo(values['forward-to']),
    events: [...new Set(readTypes('--events', values.events ?? eventTypes, eventTypes))],
    exec: values.exec ?? null,
    caFile: values['ca-file'] ?? null,
    captureTo: values.capture ?? null,
    port: readPort(values.port),
  };
}

const text = { type: 'string' } as const;
const texts = { type: 'string', multiple: true } as const;

export const options = {
  'forward-to': text,
  exec: text,
  'ca-file': text,
  events: texts,
  org: text,
  region: text,
  'secret-file': text,
  secret: texts,
  port: text,
  capture: text,
  trigger: texts,
  verify: text,
  tolerance: text,
} as const;

type Values = ReturnType<typeof parseOptions<{ options: typeof options }>>['values'];

/** Returns why an option has no effect beside the others, as the rest of a sentence; null: it has one. */
function listProblems(values: Values): Record<keyof typeof options, string | null> {
  const unless = (isUseful: boolean, problem: string) => (isUseful ? null : problem);
  const listens = unless(values.verify === undefined, 'has no effect with --verify');
  const forwardTo = values['forward-to'];
  const hasWebhook = values.secret === undefined;
  const usesStack = listens ?? unless(hasWebhook || values.trigger !== undefined, 'has no effect with --secret');
  return {
    verify: null,
    tolerance: unless(values.verify !== undefined, 'needs --verify FILE'),
    secret: null,
    'secret-file': unless(hasWebhook, 'has no effect with --secret'),
    'forward-to': listens,
    exec: listens ?? unless(forwardTo !== undefined, 'needs --forward-to, the URL of your receiver'),
    'ca-file': listens ?? unless(/^https:/i.test(forwardTo ?? ''), 'needs --forward-to with an https:// URL'),
    events: listens ?? unless(hasWebhook, 'has no effect with --secret'),
    org: usesStack,
    region: usesStack,
    port: listens,
    capture: listens,
    trigger: listens,
  };
}

function readForwardTo(given: string | undefined): string | null {
  if (given === undefined || /^https?:$/.test(URL.parse(given)?.protocol ?? '')) return given ?? null;
  throw new UsageError('--forward-to: give an http:// or https:// URL.');
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
  const types = given.flatMap((one) => one.split(',')).map((one) => one.trim());
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

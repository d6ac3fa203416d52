/**
 * An open-loop load of one rate in a separate process: `node paced.ts` with one argument, JSON of
 * `url`, `keysFile`, `resource`, `perSecond`, `seconds` and `warmUpSeconds`. It measures as wrk2
 * does, which Debian does not have.
 * Request n is due at n / rate, whether or not earlier ones were answered, and its latency counts
 * from when it was due. So a server that stops for a second shows as a second of late responses.
 * Delays of this process also count against the server: `lateP99Ms` reports them. It writes
 * requests to sockets, because an HTTP client would take a third of a core at these rates.
 */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

export interface PacedLoad {
  url: string;
  keysFile: string;
  resource: string;
  perSecond: number;
  seconds: number;
  /** The first seconds of the load, which do not count. */
  warmUpSeconds: number;
}

/**
 * The result of one paced run. `late…` is how long after they were due requests were written;
 * `cpuShare` is this process's share of one core.
 */
export interface PacedRun {
  requests: number;
  errors: number;
  p50Ms: number;
  p99Ms: number;
  lateP50Ms: number;
  lateP99Ms: number;
  cpuShare: number;
}

interface Connection {
  socket: Socket;
  /** The part of the response received so far. */
  text: string;
  dueMs: number;
  counted: boolean;
}

/**
 * Maximum number of connections. A request that is due while all of them wait is written when one
 * is free, and its latency continues to count.
 */
const mostConnections = 512;
const drainMs = 5_000;

export function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

async function runPaced(load: PacedLoad): Promise<PacedRun> {
  const requests = formatRequests(load);
  const { hostname, port } = new URL(load.url);
  const idle: Connection[] = [];
  const latencies: number[] = [];
  const lateness: number[] = [];
  let open = 0;
  let sent = 0;
  let answered = 0;
  let errors = 0;
  const uncounted = Math.round(load.warmUpSeconds * load.perSecond);
  const total = uncounted + Math.round(load.seconds * load.perSecond);
  const startedMs = performance.now();
  const cpuBefore = process.cpuUsage();

  /** Writes due requests, as far as connections are free. */
  function sendDue(): void {
    const nowMs = performance.now();
    while (sent < total && startedMs + (sent * 1000) / load.perSecond <= nowMs) {
      const connection = idle.pop() ?? openConnection();
      if (connection === null) return;
      connection.dueMs = startedMs + (sent * 1000) / load.perSecond;
      connection.counted = sent >= uncounted;
      if (connection.counted) lateness.push(nowMs - connection.dueMs);
      connection.socket.write(requests[sent % requests.length] ?? '');
      sent += 1;
    }
  }

  function openConnection(): Connection | null {
    if (open === mostConnections) return null;
    open += 1;
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    const connection: Connection = { socket, text: '', dueMs: 0, counted: false };
    socket.setEncoding('latin1');
    socket.on('data', (part: string) => read(connection, part));
    socket.on('error', (error) => {
      throw error;
    });
    return connection;
  }

  function read(connection: Connection, part: string): void {
    connection.text = connection.text === '' ? part : connection.text + part;
    const headEnd = connection.text.indexOf('\r\n\r\n');
    if (headEnd === -1) return;
    const length = /\r\ncontent-length: (\d+)/i.exec(connection.text)?.[1];
    if (length === undefined) throw new Error('a response without Content-Length, which this load cannot read');
    if (connection.text.length < headEnd + 4 + Number(length)) return;
    if (!connection.text.startsWith('HTTP/1.1 2')) errors += 1;
    if (connection.counted) latencies.push(performance.now() - connection.dueMs);
    connection.text = '';
    answered += 1;
    idle.push(connection);
    sendDue();
  }

  await new Promise<void>((resolve, reject) => {
    const timer = setInterval(() => {
      sendDue();
      const overdueMs = performance.now() - startedMs - (total * 1000) / load.perSecond;
      if (answered < total && overdueMs < drainMs) return;
      clearInterval(timer);
      if (answered === total) resolve();
      else reject(new Error(`${total - answered} of ${total} requests were not answered within ${drainMs} ms`));
    }, 1);
  });
  const elapsedMs = performance.now() - startedMs;
  const cpu = process.cpuUsage(cpuBefore);
  for (const { socket } of idle) socket.destroy();
  const sorted = Float64Array.from(latencies).sort();
  const late = Float64Array.from(lateness).sort();
  return {
    requests: sorted.length,
    errors,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    lateP50Ms: quantile(late, 0.5),
    lateP99Ms: quantile(late, 0.99),
    cpuShare: (cpu.user + cpu.system) / 1000 / elapsedMs,
  };
}

function formatRequests({ url, keysFile, resource }: PacedLoad): string[] {
  const lines = readFileSync(keysFile, 'utf8').trim().split('\n');
  return lines.map((line) => {
    const [key, organizationId] = line.split(' ');
    return (
      `GET /v1/orgs/${organizationId}${resource} HTTP/1.1\r\nHost: ${new URL(url).host}\r\nAuthorization: ` +
      `Bearer ${key}\r\n\r\n`
    );
  });
}

if (import.meta.main) process.stdout.write(JSON.stringify(await runPaced(JSON.parse(process.argv[2] ?? '{}'))));

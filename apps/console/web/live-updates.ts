import { AsyncLocalStorage } from 'node:async_hooks';
import { endStatementsOn } from '#domain/db/end-statements.ts';
import { createBudget, type Hold } from '#runtime/budget.ts';
import type { GuardedAnswer } from '#runtime/guarded-answer.ts';
import { refusalOf } from './refusals.ts';
import { versionOf } from './version.ts';

/** The person who looks at a page. */
interface Viewer {
  readonly session: { readonly personId: string };
}

/** The streams of one page: of the same organization, path and query. */
interface Topic<Visit> {
  readonly streams: Set<Stream<Visit>>;
  readonly read: (visit: Visit) => Promise<unknown>;
  /** Aborted when its last stream has ended: what is being read for it ends. */
  readonly ending: AbortController;
}

interface Stream<Visit> {
  visit: Visit;
  readonly answer: GuardedAnswer;
  readonly hold: Hold;
  /** Finds the session and its permissions again; null when the page may no longer be shown. */
  readonly renew: (visit: Visit) => Promise<Visit | null>;
  /** The last version that was sent to the browser, or the one that it asked with. */
  version: string;
  /** Times of `performance.now()`. */
  readonly openedAtMs: number;
  checkedAtMs: number;
}

interface LiveOptions {
  /** Called with errors other than refusals. They end streams, whose browsers then poll. */
  onError: (error: unknown) => void;
  everyMs?: number;
  /** After this time without a message, permissions are checked and a comment is sent. */
  heartbeatMs?: number;
  /** After this time a stream ends, and its browser opens another. */
  lifetimeMs: number;
  /** Streams of this process at a time; more are refused. */
  maxStreams: number;
}

const streamsPerPerson = 6;

/** A message that ends with an empty line, as server-sent events do. */
const message = (event: string, data: string): string => `event: ${event}\ndata: ${data}\n\n`;

/**
 * Notifies open pages of changes by server-sent events. Every two seconds it reads what each page
 * shows, one page after another, and once for all viewers of the same page. A message contains a
 * version and no content: the browser requests the page's part as it does when it polls.
 *
 * Permissions are checked before each message and at each heartbeat, so a stream outlives its
 * session by at most one heartbeat, and carries no message in that time.
 */
export function createLiveUpdates<Visit extends Viewer>(options: LiveOptions) {
  const { onError, everyMs = 2_000, heartbeatMs = 10_000, lifetimeMs, maxStreams } = options;
  const budget = createBudget<'person'>({
    limits: { person: streamsPerPerson, pod: maxStreams },
    maxWaiting: { each: 0, all: 0 },
    waitMs: 0,
  });
  const topics = new Map<string, Topic<Visit>>();
  /** Runs what does not end with the request that started it. */
  const outside = AsyncLocalStorage.snapshot();
  let timer: NodeJS.Timeout | null = null;
  let isStopped = false;

  function end(key: string, topic: Topic<Visit>, stream: Stream<Visit>): void {
    if (!topic.streams.delete(stream)) return;
    if (topic.streams.size === 0) {
      if (topics.get(key) === topic) topics.delete(key);
      topic.ending.abort();
    }
    stream.hold.release();
    if (stream.answer.writable) stream.answer.end(message('end', ''));
    // A connection that stayed open would delay the server's stop.
    if (isStopped) stream.answer.socket?.destroySoon();
  }

  /** Returns whether the person may still see the page, and ends the stream otherwise. */
  async function isAllowed(key: string, topic: Topic<Visit>, stream: Stream<Visit>): Promise<boolean> {
    const visit = await stream.renew(stream.visit);
    if (visit === null) end(key, topic, stream);
    else Object.assign(stream, { visit, checkedAtMs: performance.now() });
    return visit !== null && topic.streams.has(stream);
  }

  /** Reads what a page shows, with the first viewer who may see it; null when none may. */
  async function readVersion(key: string, topic: Topic<Visit>): Promise<string | null> {
    for (const stream of topic.streams) {
      try {
        return versionOf(await topic.read(stream.visit));
      } catch (error) {
        if (refusalOf(error) === null) throw error;
        end(key, topic, stream);
      }
    }
    return null;
  }

  /** Sends a stream what is due: its end, a new version, or a heartbeat. */
  async function updateStream(
    key: string,
    topic: Topic<Visit>,
    stream: Stream<Visit>,
    version: string | null,
  ): Promise<void> {
    const nowMs = performance.now();
    if (nowMs - stream.openedAtMs > lifetimeMs) return end(key, topic, stream);
    const changed = version === stream.version ? null : version;
    if (changed === null && nowMs - stream.checkedAtMs < heartbeatMs) return;
    if (!(await isAllowed(key, topic, stream))) return;
    stream.answer.write(changed === null ? ':\n\n' : message('changed', changed));
    stream.version = changed ?? stream.version;
  }

  async function updateTopic(key: string, topic: Topic<Visit>): Promise<void> {
    const version = await readVersion(key, topic);
    for (const stream of topic.streams) await updateStream(key, topic, stream, version);
  }

  /** One page after another, so that a process runs one statement of this kind at a time. */
  async function updateAll(): Promise<void> {
    for (const [key, topic] of topics) {
      try {
        await endStatementsOn(topic.ending.signal, () => updateTopic(key, topic));
      } catch (error) {
        if (!topic.ending.signal.aborted) onError(error);
        for (const stream of topic.streams) end(key, topic, stream);
      }
    }
    timer = null;
    schedule();
  }

  function schedule(): void {
    if (timer !== null || isStopped || topics.size === 0) return;
    timer = setTimeout(() => outside(() => void updateAll()), everyMs);
    timer.unref();
  }

  return {
    /**
     * Opens a stream on an answer whose headers the caller has set.
     *
     * @param key - identifies the page; streams with the same key are read together.
     * @param version - the version that the browser shows.
     * @throws BudgetExhausted when the person or this process has too many streams.
     */
    async open(
      key: string,
      parts: Pick<Stream<Visit>, 'visit' | 'answer' | 'renew' | 'version'> & Pick<Topic<Visit>, 'read'>,
    ): Promise<void> {
      const { read, ...stream } = parts;
      const { answer, visit } = stream;
      const hold = await budget.reserve({ person: visit.session.personId }, 1, answer);
      const topic = topics.get(key) ?? { streams: new Set(), read, ending: new AbortController() };
      topics.set(key, topic);
      const nowMs = performance.now();
      const opened: Stream<Visit> = { ...stream, hold, openedAtMs: nowMs, checkedAtMs: nowMs };
      topic.streams.add(opened);
      answer.onEnd(() => end(key, topic, opened));
      answer.flushHeaders();
      // With the comment, proxies pass the headers on at once.
      answer.write(':\n\n');
      if (isStopped) end(key, topic, opened);
      schedule();
    },

    /** The number of open streams. */
    get count() {
      return budget.state.held;
    },

    /** Ends all streams, and each that is opened later. Can be called twice. */
    stop(): void {
      isStopped = true;
      if (timer !== null) clearTimeout(timer);
      for (const [key, topic] of topics) for (const stream of topic.streams) end(key, topic, stream);
    },
  };
}

export type LiveUpdates<Visit extends Viewer> = ReturnType<typeof createLiveUpdates<Visit>>;

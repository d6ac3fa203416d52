/** No budget was free in time; `level` names the limit. */
export class BudgetExhausted<Level extends string = string> extends Error {
  readonly level: Level;

  constructor(level: Level) {
    super(`the ${level}'s share is used up`);
    this.name = 'BudgetExhausted';
    this.level = level;
  }
}

/** The client disconnected while its request waited. */
export class ClientGone extends Error {
  constructor() {
    super('the client went away');
    this.name = 'ClientGone';
  }
}

/** Who holds a part of the budget, by level; null is not known and not counted. */
type Holders<Level extends string> = Readonly<Record<Level, string | null>>;

interface BudgetOptions<Level extends string> {
  /** The most that one holder of each level may hold at a time, and the whole process. */
  limits: Readonly<Record<Level | 'pod', number>>;
  maxWaiting: Readonly<{ each: number; all: number }>;
  waitMs: number;
  /** Called when a wait ends, with the level whose share was used up. */
  onWaited?: (end: 'admitted' | 'refused' | 'gone', limit: Level | 'pod') => void;
}

/** A part of the budget that is held. */
export interface Hold {
  /** Changes the amount; a larger one is taken even when it is not free. */
  resize(amount: number): void;
  /** Releases all of it. Can be called twice; afterwards nothing can be taken. */
  release(): void;
}

/** Reports that the client disconnected: an answer, or several. */
export interface Ends {
  onEnd(callback: () => void): void;
}

interface Account {
  held: number;
  waiting: number;
  /** Number of holds and waits that use this account. */
  users: number;
  /** Turn of the last request that waited. */
  turn: number;
  forget: () => void;
}

/** Unused accounts of a level that are kept: creating one for each request costs processor time. */
const maxIdleAccounts = 10_000;

interface Waiter<Level extends string> {
  holders: Holders<Level>;
  amount: number;
  /** Its turn among all waiting requests. */
  turn: number;
  admit: () => void;
}

/**
 * Divides a scarce resource of a process (memory, downloads) among requests, with a limit for each
 * holder and for the process.
 *
 * An amount fits if holder and process stay within their limits, and one larger than a limit fits
 * while nothing else is held. Everything else waits. Holders of the first level take turns
 * (start-time fair queueing), so that many requests of one holder delay another's by one turn only.
 * A holder that has used up its share delays no other.
 */
export function createBudget<Level extends string>(options: BudgetOptions<Level>) {
  const { limits, maxWaiting, waitMs, onWaited = () => {} } = options;
  const levels = Object.keys(limits).filter((level) => level !== 'pod') as Level[];
  const accounts = new Map<Level, Map<string, Account>>(levels.map((level) => [level, new Map()]));
  let waiting: Waiter<Level>[] = [];
  let held = 0;
  /** Turn of the last request that was admitted after a wait. */
  let currentTurn = 0;

  const accountOf = (level: Level, id: string) => accounts.get(level)?.get(id);

  /** Opens the accounts of the holders; each gets one more user. */
  function openAccounts(holders: Holders<Level>): Account[] {
    const opened: Account[] = [];
    for (const level of levels) {
      const id = holders[level];
      const ofLevel = accounts.get(level);
      if (id === null || ofLevel === undefined) continue;
      let account = ofLevel.get(id);
      if (account === undefined) {
        const forget = () => void (ofLevel.size > maxIdleAccounts && ofLevel.delete(id));
        account = { held: 0, waiting: 0, users: 0, turn: 0, forget };
        ofLevel.set(id, account);
      }
      account.users += 1;
      opened.push(account);
    }
    return opened;
  }

  function closeAccounts(opened: Account[]): void {
    for (const account of opened) {
      account.users -= 1;
      if (account.users === 0) account.forget();
    }
  }

  /** Returns the level whose limit the amount would exceed, or null when it fits. */
  function findObstacle(holders: Holders<Level>, amount: number): Level | 'pod' | null {
    for (const level of levels) {
      const id = holders[level];
      const ofHolder = id === null ? 0 : (accountOf(level, id)?.held ?? 0);
      if (ofHolder > 0 && ofHolder + amount > limits[level]) return level;
    }
    return held > 0 && held + amount > limits.pod ? 'pod' : null;
  }

  class Taken implements Hold {
    readonly #accounts: Account[];
    #amount = 0;
    #isReleased = false;

    constructor(holders: Holders<Level>, amount: number) {
      this.#accounts = openAccounts(holders);
      this.resize(amount);
    }

    resize(amount: number): void {
      const change = amount - this.#amount;
      if (this.#isReleased || change === 0) return;
      this.#amount = amount;
      held += change;
      for (const account of this.#accounts) account.held += change;
      if (change < 0 && waiting.length > 0) admitWaiting();
    }

    release(): void {
      if (this.#isReleased) return;
      this.resize(0);
      this.#isReleased = true;
      closeAccounts(this.#accounts);
    }
  }

  /**
   * Admits what fits, in order. Nothing passes a request that waits for the process's limit, or a
   * large amount would wait forever.
   */
  function admitWaiting(): void {
    for (const waiter of [...waiting]) {
      const obstacle = findObstacle(waiter.holders, waiter.amount);
      if (obstacle === 'pod') return;
      if (obstacle !== null) continue;
      waiter.admit();
    }
  }

  /** Returns whether a request waits for the process's limit. A new one must not overtake it. */
  const isPodAwaited = () =>
    waiting.length > 0 && waiting.some(({ holders, amount }) => findObstacle(holders, amount) === 'pod');

  /** Returns the level whose queue is full, or null. */
  function findFullQueue(holders: Holders<Level>): Level | 'pod' | null {
    const [first] = levels;
    const id = first === undefined ? null : holders[first];
    const ofHolder = first === undefined || id === null ? 0 : (accountOf(first, id)?.waiting ?? 0);
    if (first !== undefined && ofHolder >= maxWaiting.each) return first;
    return waiting.length >= maxWaiting.all ? 'pod' : null;
  }

  /** @throws BudgetExhausted when nothing may wait, or too many wait already. */
  function checkQueue(holders: Holders<Level>, obstacle: Level | 'pod'): void {
    const limit = maxWaiting.all === 0 ? obstacle : findFullQueue(holders);
    if (limit === null) return;
    onWaited('refused', limit);
    throw new BudgetExhausted(limit);
  }

  function wait(
    holders: Holders<Level>,
    amount: number,
    obstacle: Level | 'pod',
    client: Ends,
    atMostMs: number,
  ): Promise<Hold> {
    checkQueue(holders, obstacle);
    const opened = openAccounts(holders);
    return new Promise((resolve, reject) => {
      /** Ends the wait once. Others may fit now. */
      const end = (how: 'admitted' | 'refused' | 'gone', limit: Level | 'pod', settle: () => void) => {
        if (!waiting.includes(waiter)) return;
        clearTimeout(timer);
        waiting = waiting.filter((other) => other !== waiter);
        for (const account of opened) account.waiting -= 1;
        closeAccounts(opened);
        onWaited(how, limit);
        settle();
        if (how !== 'admitted') admitWaiting();
      };
      const waiter: Waiter<Level> = {
        holders,
        amount,
        turn: Math.max(currentTurn, ...opened.slice(0, 1).map(({ turn }) => turn + 1)),
        admit: () => {
          currentTurn = waiter.turn;
          end('admitted', obstacle, () => resolve(new Taken(holders, amount)));
        },
      };
      const timer = setTimeout(() => {
        const limit = findObstacle(holders, amount) ?? obstacle;
        end('refused', limit, () => reject(new BudgetExhausted(limit)));
      }, atMostMs);
      const [holder] = opened;
      if (holder !== undefined) holder.turn = waiter.turn;
      waiting.splice(waiting.findLastIndex(({ turn }) => turn <= waiter.turn) + 1, 0, waiter);
      for (const account of opened) account.waiting += 1;
      client.onEnd(() => end('gone', obstacle, () => reject(new ClientGone())));
    });
  }

  return {
    /**
     * Takes a part of the budget, at once or after a wait.
     *
     * @param client - ends the wait when it disconnects.
     * @param waitAtMostMs - shortens the wait of a request that has waited elsewhere.
     * @returns the hold, or a promise of it, which rejects with BudgetExhausted or ClientGone.
     * @throws BudgetExhausted when too many wait.
     */
    reserve(holders: Holders<Level>, amount: number, client: Ends, waitAtMostMs = waitMs): Hold | Promise<Hold> {
      const obstacle = findObstacle(holders, amount) ?? (isPodAwaited() ? 'pod' : null);
      return obstacle === null ? new Taken(holders, amount) : wait(holders, amount, obstacle, client, waitAtMostMs);
    },

    /** Returns what is held, and how many wait. */
    get state() {
      return { held, waiting: waiting.length };
    },
  };
}

import { describe, expect, it } from 'vitest';
import { tryStaggered } from '#runtime/egress/staggered.ts';

type Found = { ok: true; name: string } | { ok: false; name: string };
const success = (name: string): Found => ({ ok: true, name });
const failure = (name: string): Found => ({ ok: false, name });
const neverAborted = () => new AbortController().signal;
const onAbort = (signal: AbortSignal) => new Promise((done) => signal.addEventListener('abort', done));

describe('candidates that are tried in turn', () => {
  it('begin in their order, the next at once when one fails, and none after a success', async () => {
    const begun: string[] = [];
    const start = async (name: string) => {
      begun.push(name);
      return name === 'c' ? success(name) : failure(name);
    };
    const found = await tryStaggered(['a', 'b', 'c', 'd'], start, neverAborted());
    expect(found).toEqual({ success: success('c'), failures: [failure('a'), failure('b')] });
    expect(begun).toEqual(['a', 'b', 'c']);
  });

  it('include a slow one, which may succeed after all others have failed', async () => {
    const others = Promise.withResolvers<void>();
    const start = async (name: string) => {
      if (name === 'slow') return others.promise.then(() => success(name));
      others.resolve();
      return failure(name);
    };
    const found = await tryStaggered(['slow', 'b'], start, neverAborted());
    expect(found.success).toEqual(success('slow'));
  });

  it('end when another succeeds', async () => {
    const ended: string[] = [];
    const start = async (name: string, signal: AbortSignal) => {
      if (name === 'c') return success(name);
      await onAbort(signal);
      ended.push(name);
      return failure(name);
    };
    expect((await tryStaggered(['a', 'b', 'c'], start, neverAborted())).success).toEqual(success('c'));
    expect(ended).toEqual(['a', 'b']);
  });

  it('end when the signal aborts, and no other begins', async () => {
    const controller = new AbortController();
    const begun: string[] = [];
    const start = async (name: string, signal: AbortSignal) => {
      begun.push(name);
      setImmediate(() => controller.abort());
      await onAbort(signal);
      return failure(name);
    };
    const found = await tryStaggered(['a', 'b', 'c'], start, controller.signal);
    expect(found).toEqual({ success: null, failures: [failure('a')] });
    expect(begun).toEqual(['a']);
  });

  it('may be none', async () => {
    const found = await tryStaggered([] as string[], async (name) => success(name), neverAborted());
    expect(found).toEqual({ success: null, failures: [] });
  });
});

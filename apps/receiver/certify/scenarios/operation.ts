import { maxConcurrency } from '#domain/webhooks/limits.ts';
import { Finding, isAccepted, rejection } from '../probe.ts';
import type { Scenario } from '../scenario.ts';

/** How it answers, in all scenarios together. */
export const operation: readonly Scenario[] = [
  {
    name: 'accepts-parallel-events',
    title: `accepts ${maxConcurrency} events at once`,
    why: `A webhook gets up to ${maxConcurrency} requests at once; rejected ones wait for their next attempt.`,
    fix: 'Allow as many requests and database connections at once, and exempt this URL from rate limits.',
    async run(probe) {
      const answers = await Promise.all(Array.from({ length: maxConcurrency }, () => probe.send(probe.started())));
      const rejected = answers.filter((answer) => !isAccepted(answer));
      const [first] = rejected;
      if (first !== undefined) throw rejection(first, `${rejected.length} of ${maxConcurrency} events at once`);
    },
  },
  {
    name: 'answers-in-time',
    title: 'answers within the deadline',
    why: 'Without a status within 10 seconds an event is sent again, while the first one may still be applied.',
    fix: 'Insert longer work into a queue of your own, in the transaction that remembers the event, and answer.',
    needsAccepted: false,
    async run({ answers, options: { deadlineMs } }) {
      const slow = answers.filter(({ problem }) => problem !== null && /did not answer/.test(problem));
      if (slow.length > 0)
        throw new Finding(`${slow.length} of ${answers.length} requests got no status within ${deadlineMs / 1_000} s.`);
    },
  },
  {
    name: 'answers-no-redirect',
    title: 'answers no redirect',
    why: 'Redirects are not followed: the event fails, and the webhook is suspended after a while.',
    fix: 'Register the URL to which it redirects: https, with or without the slash at the end, and no page to sign in.',
    needsAccepted: false,
    async run({ answers }) {
      const redirect = answers.find(({ status }) => status !== null && status >= 300 && status <= 399);
      if (redirect !== undefined) throw new Finding(`It answered ${redirect.status}.`);
    },
  },
  {
    name: 'answers-no-410',
    title: 'never answers 410',
    why: '410 suspends the webhook at once, until a member of the organization resumes it.',
    fix: 'Answer 2xx to what you do not need, 400 to what does not verify, and 503 to what should come again.',
    needsAccepted: false,
    async run({ answers }) {
      const gone = answers.filter(({ status }) => status === 410).length;
      if (gone > 0) throw new Finding(`It answered 410 to ${gone} of ${answers.length} requests.`);
    },
  },
];

/** Mails as a mail program on a phone shows them. */
import { afterAll, expect, it } from 'vitest';
import { mailKinds } from '#domain/mail/kinds.ts';
import { renderHtml } from '../../apps/worker/mail/render.ts';
import { composeText } from '../../apps/worker/mail/texts.ts';
import { closeBrowser, expectQuiet, openVisit, violations } from '../console/browser.ts';
import { createMail, item, origin } from './sample-mail.ts';

afterAll(closeBrowser);

it.each(['light', 'dark'] as const)(
  'every mail fits 320 px and has enough contrast in %s',
  { timeout: 180_000 },
  async (scheme) => {
    const visit = await openVisit(origin, { screen: 'narrow', scheme });
    for (const kind of mailKinds) {
      const { facts } = createMail(kind);
      const names = {
        organization: 'Harbor'.repeat(20),
        items: [item, { ...item, host: `${'hooks'.repeat(12)}.example.org` }],
      };
      const text = composeText(createMail(kind, { facts: { ...facts, ...names } }), origin);
      await visit.page.setContent(renderHtml(text, `${origin}/mail/stop/${'a'.repeat(120)}`));
      const width = await visit.page.evaluate<number>('document.documentElement.scrollWidth');
      expect([kind, width, await violations(visit.page, { colors: true })]).toEqual([kind, 320, []]);
    }
    expectQuiet(visit);
  },
);

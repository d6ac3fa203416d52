import { findMail } from '#domain/mail/find-mail.ts';
import { UsageError } from '#runtime/errors.ts';
import type { Noun } from './command.ts';
import { CommandError } from './errors.ts';
import { fields } from './table.ts';

/** `orgctl mail …` */
export const mail: Noun = {
  noun: 'mail',
  summary: 'mails that people say they got, or did not get',
  commands: [
    {
      verb: 'show',
      summary: 'show what a mail was, and what became of it; neither its address nor its text',
      options: { mail: { value: 'ID', about: 'its Message-ID, or the id of its row', required: true } },
      async run(options, { database }) {
        const found = await findMail(database, readMailId(options.get('mail')));
        if (found === null)
          throw new CommandError('There is no such mail. Mails are kept for 30 days after they were settled.');
        return { json: found, text: fields({ ...found }) };
      },
    },
  ],
};

/** Returns the id of a mail's row. A Message-ID is `<ID@DOMAIN>`. @throws UsageError */
function readMailId(text: string): string {
  const [, id] = /^<?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:@[\w.-]+)?>?$/i.exec(text.trim()) ?? [];
  if (id === undefined) throw new UsageError('--mail: enter the Message-ID of the mail, or the id of its row.');
  return id.toLowerCase();
}

import type { Middleware } from 'koa';
import type { Queryable } from '#domain/db/database.ts';
import type { SealingKeys } from '#domain/encryption/envelope.ts';
import { optOut } from '#domain/mail/opt-outs.ts';
import { readStopLink } from '#domain/mail/stop-link.ts';
import { html } from '#runtime/pages/html.ts';
import { layout } from '../components/layout.ts';
import { optionalLabels } from '../components/mail-kinds.ts';
import { NotFoundError, page } from '../web/response.ts';
import type { ConsoleState } from '../web/state.ts';

const prefix = '/mail/stop/';

/**
 * Turns off one kind of mails for one member, by the link in such a mail (RFC 8058). A GET changes
 * nothing, because programs open links. The POST comes from mail programs, without a session and from
 * no page of the console: the signature in the path is its only proof, and the body is not read. It
 * can turn off and do nothing else.
 */
export const stopMail =
  ({ database, keys }: { database: Queryable; keys: () => SealingKeys }): Middleware<ConsoleState> =>
  async (ctx, next) => {
    if (!ctx.path.startsWith(prefix) || !['GET', 'HEAD', 'POST'].includes(ctx.method)) return next();
    ctx.state.operation = 'stopMail';
    const stopped = readStopLink(ctx.path.slice(prefix.length), keys());
    if (stopped === null) throw new NotFoundError();
    const kind = optionalLabels[stopped.kind];
    if (ctx.method === 'POST') await optOut(database, stopped);
    const title = ctx.method === 'POST' ? 'Emails turned off' : 'Turn off emails?';
    const body =
      ctx.method === 'POST'
        ? html`<p>You get no more emails about ${kind}. You can turn them on again in the console, under
            Your account.</p>`
        : html`<p>You will get no more emails about ${kind}. Other emails stay.</p>
            <form method="post" action="${ctx.path}">
              <p class="actions"><button type="submit">Turn off emails</button></p></form>`;
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = layout(null, page({ title, body })).toString();
  };

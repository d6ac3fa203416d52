import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import PostalMime, { type Email } from 'postal-mime';
import { SMTPServer } from 'smtp-server';
import { StartupError } from '#runtime/errors.ts';
import { type Html, html, nothing, trusted } from '#runtime/pages/html.ts';
import { portVariable } from './servers/ports.ts';

/** A mail of the inbox, newest first. */
interface CaughtMail {
  id: number;
  to: string;
  at: Date;
  mail: Email;
}

const keptMails = 200;

const style = trusted(`:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;margin:1rem auto;max-width:60rem;padding:0 1rem}
h1{font-size:1.25rem;line-height:1.3}
table{border-collapse:collapse;width:100%}
td{text-align:left;padding:.4rem .8rem .4rem 0;vertical-align:top;overflow-wrap:anywhere}
iframe{width:100%;height:46rem;border:1px solid #8886}pre{white-space:pre-wrap;overflow-wrap:anywhere}`);

/** A mail runs no script and loads nothing, as in a mail program; its links open in a window of their own. */
const sandbox = 'allow-popups allow-popups-to-escape-sandbox';

/**
 * Starts the inbox of `npm start`: a mail server that forwards nothing, and a page with what it got.
 * Mails are in memory, the newest 200.
 */
export async function startInbox({ smtpPort, pagePort }: { smtpPort: number; pagePort: number }) {
  const mails: CaughtMail[] = [];
  let count = 0;
  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, session, done) {
      const parts: Buffer[] = [];
      stream.on('data', (part: Buffer) => parts.push(part));
      stream.on('end', () => {
        PostalMime.parse(Buffer.concat(parts)).then((mail) => {
          count += 1;
          mails.unshift({ id: count, to: session.envelope.rcptTo[0]?.address ?? '', at: new Date(), mail });
          mails.length = Math.min(mails.length, keptMails);
          done();
        }, done);
      });
    },
  });
  smtp.on('error', () => {}); // of a client that closes early
  const page = createServer(showInbox(mails));
  smtp.listen(smtpPort, '127.0.0.1');
  page.listen(pagePort, '127.0.0.1');
  await Promise.all([once(smtp.server, 'listening'), once(page, 'listening')]).catch((error: NodeJS.ErrnoException) => {
    throw new StartupError(
      `The inbox of mails did not start (${error.code}): if port ${smtpPort} or ${pagePort} is taken, set ` +
        `${portVariable}, the first port of a stack.`,
    );
  });
  page.unref();
  smtp.server.unref();
  return { mailUrl: `smtp://127.0.0.1:${smtpPort}`, inbox: `http://127.0.0.1:${pagePort}/` };
}

/** Serves the list, `/<id>` with one mail, and `/<id>/html` for its frame. */
function showInbox(mails: readonly CaughtMail[]): RequestListener {
  return ({ url = '/' }, response) => {
    const [, id, part] = /^\/(\d+)(\/html)?$/.exec(url) ?? [];
    const mail = mails.find((one) => one.id === Number(id));
    const isFound = url === '/' || mail !== undefined;
    response.writeHead(isFound ? 200 : 404, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        part === undefined
          ? "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'"
          : `default-src 'none'; style-src 'unsafe-inline'; sandbox ${sandbox}`,
    });
    if (part !== undefined)
      // The console, where its links lead, opens in no frame.
      return void response.end((mail?.mail.html ?? '').replace(/<head>/i, '<head><base target="_blank">'));
    const body = url === '/' ? renderList(mails) : mail === undefined ? html`<h1>No such mail</h1>` : renderMail(mail);
    response.end(String(renderPage(body)));
  };
}

const renderPage = (body: Html): Html => html`<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Inbox</title><style>${style}</style></head>
<body>${body}</body></html>`;

const renderList = (mails: readonly CaughtMail[]): Html => html`<h1>Inbox</h1>
<p>Mails of this development stack. None leaves this machine.</p>
${mails.length === 0 ? html`<p>No mail yet. Invite a member in the console.</p>` : nothing}
<table>${mails.map(
  ({ id, to, at, mail }) =>
    html`<tr><td>${at.toISOString().slice(11, 19)}</td><td>${to}</td>
<td><a href="/${id}">${mail.subject ?? '(no subject)'}</a></td></tr>`,
)}</table>`;

const renderMail = ({ id, to, mail }: CaughtMail): Html => html`<p><a href="/">Inbox</a></p>
<h1>${mail.subject ?? '(no subject)'}</h1>
<p>To ${to}, from ${mail.from?.address ?? ''}</p>
<iframe src="/${id}/html" title="The mail" sandbox="${sandbox}"></iframe>
<h2>As text</h2><pre>${mail.text ?? ''}</pre>`;

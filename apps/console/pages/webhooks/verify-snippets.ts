import { type Html, html } from '#runtime/pages/html.ts';
import { copyable } from '../../components/secret.ts';
import { type MemberVisit, referenceUrl } from '../../web/visit.ts';

/**
 * Code that verifies a signature, in the languages of the sample receivers (test/signature-libraries), whose
 * tests send them real deliveries.
 */
export const verifySnippets = [
  {
    language: 'Node',
    install: 'npm install standardwebhooks',
    code: `import { Webhook } from 'standardwebhooks';

// body: the raw bytes, before parsing; throws when the signature is wrong
new Webhook(process.env.WEBHOOK_SECRET).verify(body, request.headers);`,
  },
  {
    language: 'Python',
    install: 'pip install standardwebhooks',
    code: `from standardwebhooks import Webhook

# body: the raw bytes, before parsing; raises when the signature is wrong
Webhook(os.environ["WEBHOOK_SECRET"]).verify(body, headers)`,
  },
  {
    language: 'Go',
    install: 'go get github.com/standard-webhooks/standard-webhooks/libraries/go',
    code: `verifier, err := standardwebhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
if err != nil {
	return err
}
// body: the raw bytes, before parsing; an error when the signature is wrong
return verifier.Verify(body, request.Header)`,
  },
  {
    language: 'Java',
    install: 'com.standardwebhooks:standardwebhooks',
    code: `// body: the raw bytes, before parsing; throws when the signature is wrong
new com.standardwebhooks.Webhook(System.getenv("WEBHOOK_SECRET"))
    .verify(new String(body, StandardCharsets.UTF_8), headers);`,
  },
  {
    language: 'Rust',
    install: 'cargo add standardwebhooks',
    code: `// body: the raw bytes, before parsing; an error when the signature is wrong
standardwebhooks::Webhook::new(&std::env::var("WEBHOOK_SECRET")?)?.verify(body, headers)?;`,
  },
] as const;

/** Returns instructions for verifying signatures, one section per language. */
export function howToVerify({ console }: MemberVisit): Html {
  return html`<section aria-labelledby="verify-how"><h2 id="verify-how">Verify signatures</h2>
    <p>Every event is signed with the secret. Verify the signature before you use an event, and return 400 if it is
      wrong. Use the library of Standard Webhooks, Svix or Stripe. For Stripe’s library, the header is
      <code>Service-Signature</code>.</p>
    <p>To ignore repeats and keep the order too, use the
      <a href="${referenceUrl(console)}#kits" rel="noreferrer">receiver kits</a>.</p>
    ${verifySnippets.map(
      (
        { language, install, code },
        index,
      ) => html`<details class="aside"${index === 0 ? html` open` : ''}><summary>${language}</summary>
        <p class="quiet"><code>${install}</code></p>${copyable(`${language} code`, code)}</details>`,
    )}
  </section>`;
}

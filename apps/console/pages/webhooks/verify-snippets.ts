import { copyable } from '../../components/secret.ts';
import { type Html, html } from '../../web/html.ts';

/**
 * How a receiver verifies, in the languages of the sample receivers (test/receivers), whose tests
 * send them real deliveries.
 */
export const verifySnippets = [
  {
    language: 'Node',
    install: 'npm install standardwebhooks',
    code: `import { Webhook } from 'standardwebhooks';

// body: the bytes as they came, before any parsing; throws when it is not ours
new Webhook(process.env.WEBHOOK_SECRET).verify(body, request.headers);`,
  },
  {
    language: 'Python',
    install: 'pip install standardwebhooks',
    code: `from standardwebhooks import Webhook

# body: the bytes as they came, before any parsing; raises when it is not ours
Webhook(os.environ["WEBHOOK_SECRET"]).verify(body, headers)`,
  },
  {
    language: 'Go',
    install: 'go get github.com/standard-webhooks/standard-webhooks/libraries/go',
    code: `verifier, err := standardwebhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
if err != nil {
	return err
}
// body: the bytes as they came, before any parsing; an error when it is not ours
return verifier.Verify(body, request.Header)`,
  },
  {
    language: 'Java',
    install: 'com.standardwebhooks:standardwebhooks',
    code: `// body: the bytes as they came, before any parsing; throws when it is not ours
new com.standardwebhooks.Webhook(System.getenv("WEBHOOK_SECRET"))
    .verify(new String(body, StandardCharsets.UTF_8), headers);`,
  },
  {
    language: 'Rust',
    install: 'cargo add standardwebhooks',
    code: `// body: the bytes as they came, before any parsing; an error when it is not ours
standardwebhooks::Webhook::new(&std::env::var("WEBHOOK_SECRET")?)?.verify(body, headers)?;`,
  },
] as const;

/** How to verify, a language at a time. */
export function howToVerify(): Html {
  return html`<section aria-labelledby="verify-how"><h2 id="verify-how">How your system verifies</h2>
    <p>Every event is signed with the secret. Verify it before you believe it, and answer 400 when it is wrong. Libraries of Standard Webhooks, Svix and Stripe do it; with Stripe’s the header is <code>Service-Signature</code>.</p>
    ${verifySnippets.map(
      (
        { language, install, code },
        index,
      ) => html`<details class="aside"${index === 0 ? html` open` : ''}><summary>${language}</summary>
        <p class="quiet"><code>${install}</code></p>${copyable(`${language} code`, code)}</details>`,
    )}
  </section>`;
}

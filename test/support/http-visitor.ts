import { cookieName } from '../../apps/console/middleware/cookies.ts';

/** A page or file as received, and its text. */
export interface Visited {
  status: number;
  headers: Headers;
  text: string;
  /** Target path of a redirect; null when it is none. */
  to: string | null;
  /** Complete `Set-Cookie` headers. */
  cookies: string[];
}

export interface VisitOptions {
  headers?: Record<string, string>;
  method?: string;
}

/**
 * Keeps cookies and sends forms as a browser does, over plain HTTP, so that a test can also do what
 * no browser would. Follows no redirect. `address` is where `origin` answers, when that is
 * different.
 */
export function createHttpVisitor(origin: string, sessionToken?: string, address: string = origin) {
  const jar = new Map<string, string>();
  if (sessionToken !== undefined) jar.set(cookieName('session', origin), sessionToken);

  async function send(path: string, init: RequestInit): Promise<Visited> {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(new URL(path, address), {
      ...init,
      redirect: 'manual',
      headers: { ...(cookie === '' ? {} : { cookie }), ...(init.headers as Record<string, string>) },
    });
    const cookies = response.headers.getSetCookie();
    for (const line of cookies) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') jar.delete(name);
      else jar.set(name, value);
    }
    const location = response.headers.get('location');
    return {
      status: response.status,
      headers: response.headers,
      text: await response.text(),
      cookies,
      to: location === null ? null : location.replace(origin, ''),
    };
  }

  const visitor = {
    jar,
    get: (path: string, { headers = {}, method = 'GET' }: VisitOptions = {}) => send(path, { method, headers }),

    /** Sends a body exactly as written. */
    send: (path: string, { headers, body }: { headers: Record<string, string>; body: string }) =>
      send(path, { method: 'POST', headers, body: Buffer.from(body) }),

    /** Sends fields to a path as a form of the console would; `headers` replace the browser's. */
    post: (path: string, fields: Record<string, string | string[]>, { headers = {} }: VisitOptions = {}) => {
      const body = new URLSearchParams();
      for (const [name, value] of Object.entries(fields)) for (const each of [value].flat()) body.append(name, each);
      return send(path, { method: 'POST', body, headers: { origin, 'sec-fetch-site': 'same-origin', ...headers } });
    },

    /**
     * Opens a one-time link as a browser without scripts does: the person pastes it. Returns the
     * first step, or the response instead of it.
     */
    async openLink(link: string): Promise<Visited> {
      const sent = await visitor.submit('/enrol', '/enrol', { link });
      return sent.to === '/enrol/step' ? visitor.get(sent.to) : sent;
    },

    /** Opens a page, fills in its form for `action`, and sends it with its hidden fields. */
    async submit(
      page: string | Visited,
      action: string,
      fields: Record<string, string | string[]> = {},
      options: VisitOptions = {},
    ): Promise<Visited> {
      const opened = typeof page === 'string' ? await visitor.get(page) : page;
      return visitor.post(action, { ...hiddenFields(opened.text, action), ...fields }, options);
    },
  };
  return visitor;
}

export type HttpVisitor = ReturnType<typeof createHttpVisitor>;

/** Lifetime of a cookie that a `Set-Cookie` header sets; NaN for a session cookie. */
export const secondsLeft = (cookie: string): number =>
  (Date.parse(/; expires=([^;]*)/.exec(cookie)?.[1] ?? '') - Date.now()) / 1_000;

/**
 * Returns the hidden fields of a page's POST form for `action`. @throws when the page has no such
 * form.
 */
export function hiddenFields(page: string, action: string): Record<string, string> {
  const forms = page.match(/<form method="post"[\s\S]*?<\/form>/g) ?? [];
  const form = forms.find((text) => unescaped(/action="([^"]*)"/.exec(text)?.[1] ?? '') === action);
  if (form === undefined)
    throw new Error(`the page has no form for ${action}: ${page.slice(page.indexOf('<main'), 2_000)}`);
  const inputs = form.match(/<input type="hidden"[^>]*>/g) ?? [];
  return Object.fromEntries(
    inputs.map((input) => [
      unescaped(/name="([^"]*)"/.exec(input)?.[1] ?? ''),
      unescaped(/value="([^"]*)"/.exec(input)?.[1] ?? ''),
    ]),
  );
}

/** Returns text with its HTML entities decoded. */
export const unescaped = (text: string): string =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

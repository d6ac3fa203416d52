import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventTypes } from '#domain/contract/events.ts';
import { openBrowser } from '#test/chromium.ts';
import { defaultBaseUrls } from '../../../apps/api/config.ts';
import { publicPages } from '../../../apps/api/docs/public-pages.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';

const findPage = publicPages({ baseUrls: defaultBaseUrls });

/** Maximum time (ms) that a loaded machine needs to render. */
const patient = { timeout: 30_000 };

/** A visit of the page, with the browser's messages and requests. */
interface Visit {
  page: Page;
  requested: string[];
  complaints: string[];
}

describe('the reference page at /docs', { timeout: 120_000 }, () => {
  let server: Server;
  let origin: string;
  let browser: Browser;

  beforeAll(async () => {
    server = createServer((request, response) => {
      const found = findPage(new URL(request.url ?? '/', 'http://localhost').pathname);
      if (found === null) return void response.writeHead(404).end();
      response.writeHead(found.status, { ...found.headers, 'Content-Type': found.type }).end(found.body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    browser = await openBrowser();
  }, 300_000);

  afterAll(async () => {
    await browser?.close();
    server?.close();
  });

  async function visit(path: string): Promise<Visit> {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    const requested: string[] = [];
    const complaints: string[] = [];
    page.on('request', (request) => requested.push(request.url()));
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(`${origin}${path}`);
    await page.waitForSelector('body[data-ready]');
    return { page, requested, complaints };
  }

  it('shows all nine reads and all four webhooks in full, without a browser error or a request to another origin', async () => {
    const { page, requested, complaints } = await visit('/docs');

    const paths = await page.locator('.opblock-get .opblock-summary-path').allTextContents();
    expect(paths.map(withoutBreaks).sort()).toEqual(
      endpoints.map(({ resource }) => `/v1/orgs/{orgId}${resource}`).sort(),
    );
    const events = await page.locator('.opblock-post .opblock-summary-path').allTextContents();
    expect(events.map(withoutBreaks)).toEqual(eventTypes);

    await page.evaluate(`document.querySelectorAll('nav a[data-operation]').forEach((link) => link.click())`);
    const opened = endpoints.length + eventTypes.length;
    const bodies = page.locator('.opblock.is-open .opblock-body');
    await bodies.nth(opened - 1).waitFor({ state: 'attached', ...patient });
    await page
      .getByText('Rossi & Tremblay Family Law')
      .first()
      .waitFor({ state: 'attached', ...patient });
    expect(await bodies.count()).toBe(opened);

    expect(complaints).toEqual([]);
    expect(requested.filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith('data:'))).toEqual([]);
    await page.close();
  });

  it('explains what a partner needs before the first request: servers, a curl line, limits, errors, the signature check', async () => {
    const { page } = await visit('/docs#chapter-2');

    const text = await page.locator('.info').textContent();
    for (const part of [
      defaultBaseUrls.us,
      defaultBaseUrls.ca,
      'curl -i',
      '120 requests',
      'Retry-After',
      'rate_limited',
      'timingSafeEqual',
    ]) {
      expect(text).toContain(part);
    }
    expect(await page.locator('#chapter-2').textContent()).toBe('Keys');
    await page.close();
  });

  it('forbids inline scripts, inline styles, frames and other origins, and revalidates every file before use', () => {
    const policy = findPage('/docs')?.headers['Content-Security-Policy'];
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'");
    expect(policy).not.toMatch(/unsafe|\*|http/);
    for (const path of ['/docs', '/docs/', '/docs/start.js', '/docs/swagger-ui-bundle.js', '/v1/openapi.json']) {
      expect(findPage(path)?.headers).toMatchObject({
        ETag: expect.stringMatching(/^"[\w-]{22}"$/),
        'Cache-Control': 'public, no-cache',
        'Referrer-Policy': 'no-referrer',
      });
    }
  });

  it('serves only its own files', () => {
    for (const path of ['/docs/package.json', '/docs/../package.json', '/docs/page.ts', '/v1/openapi', '/'])
      expect(findPage(path)).toBeNull();
  });
});

/** The library breaks long paths with zero-width spaces. */
function withoutBreaks(text: string): string {
  return text.replaceAll('\u200b', '').trim();
}

import type { Page } from 'playwright-core';

/** Chooses an authenticator app as the second factor; returns the secret that the page shows. */
export async function chooseApp(page: Page): Promise<string> {
  await page.getByRole('button', { name: 'Use an authenticator app' }).click();
  await page.getByText('Can’t scan it?').click();
  const shown = await page.getByRole('region', { name: 'key', exact: true }).textContent();
  return (shown ?? '').replace(/\s/g, '');
}

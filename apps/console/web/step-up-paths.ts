import type { Route } from './route.ts';

/**
 * Returns a function that reports whether the forms of a path may ask for a second factor. They
 * are marked for the script. A path that two routes match is marked for either.
 */
export function createStepUpPaths(routes: readonly Route[]): (path: string) => boolean {
  const paths = routes.filter(({ stepUp }) => stepUp).map(({ path }) => path.replace(/:\w+/g, '[^/]+'));
  const form = new RegExp(`^(?:${paths.join('|')})(?:\\?.*)?$`);
  return (path) => form.test(path);
}

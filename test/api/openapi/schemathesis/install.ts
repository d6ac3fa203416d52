/**
 * Installs Schemathesis, which sends the API the requests that its OpenAPI document allows and
 * forbids. It is a Python program in a virtual environment.
 */
import path from 'node:path';
import { pythonEnvironment } from '#test/python-environment.ts';

const version = '4.32.5';

/**
 * Returns the path of schemathesis: `SCHEMATHESIS_PATH`, or the copy in the user's cache folder,
 * which the first run installs.
 * @throws Error with the remedy when it cannot be installed.
 */
export async function getSchemathesis(): Promise<string> {
  if (process.env.SCHEMATHESIS_PATH) return process.env.SCHEMATHESIS_PATH;
  const home = await pythonEnvironment({
    name: 'schemathesis',
    version,
    install: [`schemathesis==${version}`],
    program: 'schemathesis',
    remedy:
      `install Python 3.10 or newer with its venv module, or run \`pip install schemathesis==${version}\` ` +
      'yourself and set SCHEMATHESIS_PATH to the program',
  });
  return path.join(home, 'bin', 'schemathesis');
}

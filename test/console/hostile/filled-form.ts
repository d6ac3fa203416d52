import type { Scene } from './scene.ts';

type Fields = Record<string, string | string[]>;

/** How a person would fill in a form of the console, so that it is carried out. */
export interface FilledForm {
  /** The page that draws it; the form's own address unless given. */
  page?: (scene: Scene) => string;
  /** Parts of its path that are others than a scene's usual ones. */
  params?: (scene: Scene) => Record<string, string>;
  /** What is typed, beside the hidden fields that the page brings. */
  fields?: (scene: Scene) => Fields;
  /** Why it cannot be sent alone, without what a person does before. Other tests carry it out. */
  notAlone?: string;
}

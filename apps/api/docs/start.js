/**
 * Runs in the reader's browser: renders the document into the page. The page's policy allows no
 * inline script, so this is a separate file. There is no "Try it out": keys belong in servers, not
 * in browsers, and the policy allows requests to the page's own origin only.
 */
const navigation = document.querySelector('nav');

SwaggerUIBundle({
  url: '/v1/openapi.json',
  domNode: document.getElementById('reference'),
  validatorUrl: null,
  supportedSubmitMethods: [],
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: false,
  plugins: [{ wrapComponents: { authorizeBtn: () => () => null, authorizeOperationBtn: () => () => null } }],
  onComplete: linkNavigation,
});

/**
 * Gives the introduction's headings the ids of the navigation, and opens the operation or event
 * that a link names.
 */
function linkNavigation() {
  const headings = [...document.querySelectorAll('.info .description h1')];
  const chapters = [...navigation.querySelectorAll('a[href^="#chapter-"]')];
  for (const [index, link] of chapters.entries()) {
    if (headings[index]) headings[index].id = link.hash.slice(1);
  }
  navigation.addEventListener('click', (event) => {
    const link = event.target.closest('a[data-operation]');
    const block = link && document.querySelector(`.opblock[id$="-${link.dataset.operation}"]`);
    if (!block) return;
    event.preventDefault();
    if (!block.classList.contains('is-open')) block.querySelector('.opblock-summary-control').click();
    block.scrollIntoView();
  });
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
  document.body.dataset.ready = 'true';
}

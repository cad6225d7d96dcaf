// A person with a browser: follows redirects, keeps cookies, and fills in the two forms of the sign-in page.

/** Keeps cookies as a browser does, by name and path. */
class Cookies {
  #kept = new Map();

  take(response) {
    for (const line of response.headers.getSetCookie()) {
      const [pair, ...attributes] = line.split(';').map((part) => part.trim());
      const at = pair.indexOf('=');
      const [name, value] = [pair.slice(0, at), pair.slice(at + 1)];
      const path = attributes.find((attribute) => /^path=/i.test(attribute))?.slice('path='.length) ?? '/';
      if (value === '') this.#kept.delete(`${name} ${path}`);
      else this.#kept.set(`${name} ${path}`, { name, value, path });
    }
  }

  header(url) {
    const { pathname } = new URL(url);
    const sent = [...this.#kept.values()].filter(
      ({ path }) => pathname === path || pathname.startsWith(path.endsWith('/') ? path : `${path}/`),
    );
    return sent.map(({ name, value }) => `${name}=${value}`).join('; ');
  }
}

/** Signs in as a person who agrees to everything, or cancels if `person` is null. Returns the URL that the client is redirected to. */
export async function signIn(authorizationUrl, person, redirect) {
  const cookies = new Cookies();
  const visit = async (url, form) => {
    const response = await fetch(url, {
      method: form ? 'POST' : 'GET',
      body: form && new URLSearchParams(form),
      headers: { cookie: cookies.header(url) },
      redirect: 'manual',
    });
    cookies.take(response);
    return response;
  };

  let url = String(authorizationUrl);
  let response = await visit(url);
  for (let steps = 0; steps < 20; steps += 1) {
    const location = response.headers.get('location');
    if (location) {
      url = new URL(location, url).href;
      if (url.startsWith(redirect)) return new URL(url);
      response = await visit(url);
      continue;
    }
    const page = await response.text();
    const cancel = person === null && page.match(/href="([^"]+\/abort)"/)?.[1];
    if (cancel) {
      url = new URL(cancel, url).href;
      response = await visit(url);
      continue;
    }
    const action = page.match(/<form[^>]* action="([^"]+)"/)?.[1];
    const prompt = page.match(/name="prompt" value="([^"]+)"/)?.[1];
    if (response.status !== 200 || !action || !prompt) {
      throw new Error(`the sign-in page answers ${response.status}: ${page.slice(0, 2000)}`);
    }
    const form = prompt === 'login' ? { prompt, login: person, password: 'x' } : { prompt };
    url = new URL(action, url).href;
    response = await visit(url, form);
  }
  throw new Error('the sign-in page leads nowhere');
}

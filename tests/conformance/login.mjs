// Logins of test clients at the authorization server of oidc.mjs.

/** The client's side of a login, as the SDK asks for it: everything is kept in memory. */
export function login(user) {
  const kept = {};
  return {
    redirectUrl: "http://127.0.0.1:9/callback",
    clientMetadata: { client_name: "typescript", redirect_uris: ["http://127.0.0.1:9/callback"] },
    // Registered by hand: a client that registers itself is bound to the scopes of its first login.
    clientInformation: () => ({ client_id: "typescript" }),
    tokens: () => kept.tokens,
    saveTokens: (it) => void (kept.tokens = it),
    codeVerifier: () => kept.verifier,
    saveCodeVerifier: (it) => void (kept.verifier = it),
    redirectToAuthorization: async (url) => void (kept.redirected = await browse(url, user)),
    discoveryState: () => kept.discovery,
    saveDiscoveryState: (it) => void (kept.discovery = it),
    kept,
  };
}

/** Follows redirects with cookies, as a browser does, to the one that leaves the authorization server. */
export async function browse(first, user) {
  const cookies = new Map();
  let url = new URL(first);
  for (let step = 0; step < 10; step++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: { cookie, "x-user": user } });
    for (const it of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(it);
      cookies.set(name, value);
    }
    const next = new URL(response.headers.get("location") ?? "about:blank", url);
    if (next.protocol === "about:") throw new Error(`${response.status} ${await response.text()}`);
    if (next.origin !== first.origin) return next;
    url = next;
  }
  throw new Error("too many redirects");
}

// An authorization server on the npm package oidc-provider: `node oidc.mjs [SECONDS]`. It prints its issuer URL and
// runs until it is killed.
//
// Every user may log in without a password: a browser names itself in the header `x-user`. Every resource is known and has
// the scopes `read` and `write`. Access tokens are JWTs that are valid for SECONDS, or a minute. Clients register
// themselves, or are `typescript`; the client `service` with the secret `service-secret` acts without a user.

import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const packages = createRequire(join(process.env.MCP_HOST_CONFORMANCE, "here.js"));
const { default: Provider } = await import(pathToFileURL(packages.resolve("oidc-provider")));

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const server = createServer();
// Clients reuse connections; a server that closes an idle one meanwhile makes their next request fail.
server.keepAliveTimeout = 120_000;
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kid: "first", use: "sig", alg: "RS256" }] },
  cookies: { keys: ["test"] },
  scopes: ["openid", "offline_access", "read", "write"],
  clients: [
    {
      client_id: "typescript",
      application_type: "native",
      token_endpoint_auth_method: "none",
      grant_types: ["authorization_code"],
      redirect_uris: ["http://127.0.0.1:9/callback"],
    },
    {
      client_id: "service",
      client_secret: "service-secret",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
    },
  ],
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: "read write",
        audience: resource,
        accessTokenTTL: Number(process.argv[2] ?? 60),
        accessTokenFormat: "jwt",
      }),
    },
  },
  interactions: { url: (_, interaction) => `/login/${interaction.uid}` },
  findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  async loadExistingGrant(ctx) {
    const { client, session, params } = ctx.oidc;
    const grant = new ctx.oidc.provider.Grant({ clientId: client.clientId, accountId: session.accountId });
    grant.addOIDCScope(params.scope ?? "");
    for (const resource of [params.resource ?? []].flat()) grant.addResourceScope(resource, params.scope ?? "");
    await grant.save();
    return grant;
  },
});

server.on("request", async (request, response) => {
  if (!request.url.startsWith("/login/")) return provider.callback()(request, response);
  const result = { login: { accountId: request.headers["x-user"] ?? "nobody" }, consent: {} };
  await provider.interactionFinished(request, response, result);
});
console.log(issuer);

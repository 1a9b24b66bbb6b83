// An authorization server on the npm package oidc-provider: `node oidc.mjs [SECONDS]`. It prints its issuer URL and
// runs until it is killed.
//
// Every user may log in without a password: a browser names itself in the header `x-user`. Every resource is known and has
// the scopes `read` and `write`. Access tokens are JWTs that are valid for SECONDS, or a minute. Clients register
// themselves, or are `typescript`; the client `service` with the secret `service-secret` acts without a user.
//
// The client `gateway` with the secret `gateway-secret` exchanges access tokens (RFC 8693) of every user but `eve`. The
// claim `exchanged` of the new token is the `jti` of the old one.

import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const packages = createRequire(join(process.env.MCP_HOST_CONFORMANCE, "here.js"));
const { default: Provider, errors } = await import(pathToFileURL(packages.resolve("oidc-provider")));

const { createLocalJWKSet, jwtVerify } = await import(pathToFileURL(packages.resolve("jose")));

const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const server = createServer();
// Clients reuse connections; a server that closes an idle one meanwhile makes their next request fail.
server.keepAliveTimeout = 120_000;
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const resourceServer = (resource) => ({
  scope: "read write",
  audience: resource,
  accessTokenTTL: Number(process.argv[2] ?? 60),
  accessTokenFormat: "jwt",
});

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
    {
      client_id: "gateway",
      client_secret: "gateway-secret",
      grant_types: ["client_credentials", TOKEN_EXCHANGE],
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
      getResourceServerInfo: (_, resource) => resourceServer(resource),
    },
  },
  interactions: { url: (_, interaction) => `/login/${interaction.uid}` },
  extraTokenClaims: (_, token) => token.exchanged && { exchanged: token.exchanged },
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

const keys = createLocalJWKSet({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "first", alg: "RS256" }] });
const subjectOf = async (token) => {
  try {
    return (await jwtVerify(token, keys, { issuer })).payload;
  } catch {
    throw new errors.InvalidRequest("the subject token is not valid");
  }
};
provider.registerGrantType(
  TOKEN_EXCHANGE,
  async (ctx) => {
    const { client, params } = ctx.oidc;
    if (params.subject_token_type !== ACCESS_TOKEN) throw new errors.InvalidRequest("only access tokens are exchanged");
    const { sub, jti } = await subjectOf(params.subject_token);
    if (sub === "eve") throw new errors.InvalidTarget("this user has no access");
    const token = new provider.AccessToken({ accountId: sub, client, gty: "token_exchange" });
    token.exchanged = jti;
    token.resourceServer = new provider.ResourceServer(params.resource, resourceServer(params.resource));
    token.scope = params.scope;
    const value = await token.save();
    ctx.body = {
      access_token: value,
      issued_token_type: ACCESS_TOKEN,
      token_type: token.tokenType,
      expires_in: token.expiration,
      scope: token.scope,
    };
  },
  ["subject_token", "subject_token_type", "resource", "scope"],
);

server.on("request", async (request, response) => {
  if (!request.url.startsWith("/login/")) return provider.callback()(request, response);
  const result = { login: { accountId: request.headers["x-user"] ?? "nobody" }, consent: {} };
  await provider.interactionFinished(request, response, result);
});
console.log(issuer);

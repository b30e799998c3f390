// Asking the server. What it refuses becomes an ApiError with its own message.

const TOKEN = "regard-token";

/** A refusal: what the server says, and the status. */
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

/** GET a path; resolves to the parsed answer. */
export async function get(path, { signal } = {}) {
  return ask(path, { signal });
}

/** POST a body as JSON; resolves to the parsed answer. */
export async function post(path, body, { signal } = {}) {
  return ask(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
    signal,
  });
}

/** The token that requests carry, for this tab; "" for none. */
export function token() {
  return sessionStorage.getItem(TOKEN) ?? "";
}

export function setToken(value) {
  sessionStorage.setItem(TOKEN, value);
}

/** Whether an error only says that an answer is no longer wanted. */
export function isAborted(error) {
  return error?.name === "AbortError";
}

async function ask(path, options) {
  const headers = { ...options.headers, ...(token() ? { authorization: `Bearer ${token()}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new ApiError("The server does not answer. Is `regard serve` still running?", 0);
  }
  const json = await answer.json().catch((error) => {
    if (isAborted(error)) throw error;
    return null;
  });
  if (answer.ok && json !== null) return json;
  const message = json?.error?.message ?? `The server answered with status ${answer.status} and no explanation.`;
  if (answer.status === 401) document.dispatchEvent(new CustomEvent("regard-token-needed"));
  throw new ApiError(message, answer.status);
}

/** The `cursor` of the next page, from the answer's `Link` header (RFC 8288); undefined on the last page. */
export function nextCursor(response: Response): string | undefined {
  const url = /<([^>]+)>; *rel="next"/.exec(response.headers.get("Link") ?? "")?.[1];
  return url === undefined ? undefined : new URL(url).searchParams.get("cursor") ?? undefined;
}

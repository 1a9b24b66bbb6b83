# A server of the older era, broken in the way that its first argument names. Standard input is the protocol, a message a
# line; each request is answered as its method wants it.
say() { printf '%s\n' "$1"; }
answer() { say '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
info='"capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"1"}'
sound='{"name":"t","inputSchema":{"type":"object"}}'
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*)
    case $1 in
    era) answer '{"protocolVersion":"2023-01-01",'"$info"'}' ;;
    *) answer '{"protocolVersion":"2025-06-18",'"$info"'}' ;;
    esac ;;
  *'"tools/list"'*)
    case $1 in
    schema) answer '{"tools":['"$sound"',{"name":"worse","inputSchema":"text"}]}' ;;
    odd) answer '{"tools":[{"name":"odd","inputSchema":{"type":"objekt"}}]}' ;;
    encoding) answer "$(printf '{"tools":[{"name":"t","description":"caf\351","inputSchema":{}}]}')" ;;
    slow) sleep 600 ;;
    *) answer '{"tools":['"$sound"']}' ;;
    esac ;;
  *'"tools/call"'*)
    case $1 in
    crash) echo 'panic: index out of range' >&2; exit 134 ;;
    huge)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"
      head -c 68000000 /dev/zero | tr '\0' x
      say '"}]}}' ;;
    esac ;;
  *'"method":"notifications/'*) ;;
  *) say '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"Method not found"}}' ;;
  esac
done

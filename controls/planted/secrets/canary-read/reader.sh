# Read a planted secret with what a shell and its usual programs have, or only look at it.
cd "$HOME" || exit 3
case $1 in
builtin) read -r line <.netrc ;;
substitution) all=$(<.netrc) ;;
here) . "$HOME/project/.env" ;;
grep-home) grep -rl machine . ;;
archive) tar -cf /tmp/home.tar .ssh ;;
copied) cp .netrc /tmp/copy ;;
encoded) base64 .ssh/id_ed25519 ;;
hashed) sha256sum .ssh/id_ed25519 ;;
stream) head -c 40 .aws/credentials | tr a-z A-Z ;;
curl-file) /usr/bin/curl -s "file://$HOME/.npmrc" ;;
openssl) /usr/bin/openssl enc -base64 -in .ssh/id_ed25519 ;;
# What follows reads none of them.
grep-project)
    mkdir -p project/src
    echo 'token = load("~/.netrc", "project/.env")' >project/src/app.py
    grep -rn --include='*.py' token project
    ;;
find) find . -type f -name '*.pem' -o -name 'id_*' -size -1k ;;
list) ls -laR . ;;
test) [ -f .netrc ] && [ -r .ssh/id_ed25519 ] && [ -s .npmrc ] && echo there ;;
echo) echo cat "$HOME/.netrc" "$HOME/.ssh/id_ed25519" ;;
quoted) printf '%s\n' 'run: cat ~/.ssh/id_ed25519' >/tmp/how-to.txt && cat /tmp/how-to.txt ;;
archive-project)
    mkdir -p project/src
    echo hello >project/src/app.py
    tar -cf /tmp/project.tar --exclude=.env project
    ;;
example)
    echo 'API_TOKEN=' >project/.env.example
    cat project/.env.example
    ;;
moved) mv .netrc .netrc.bak && mv .netrc.bak .netrc ;;
*) exit 2 ;;
esac

import { html, render, useState, useEffect, useErrorBoundary } from './lib/html.js'
import { useRoute, link } from './lib/route.js'
import { key, refusal, forgetKey, onKey } from './lib/key.js'
import { Failure } from './ui/small.js'
import { Sessions } from './views/sessions.js'
import { Session } from './views/session.js'
import { Search } from './views/search.js'
import { Feed } from './views/feed.js'
import { Node } from './views/node.js'
import { KeyPrompt } from './views/key.js'

const rooms = [['sessions', 'Sessions'], ['search', 'Search'], ['feed', 'Feed'], ['node', 'Node']]

function App() {
  const { segments, query } = useRoute()
  const [, heard] = useState(0)
  useEffect(() => onKey(() => heard((n) => n + 1)), [])
  const room = segments[0] === 's' ? 'sessions' : (segments[0] ?? 'sessions')
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <a class="brand" href=${link([])}><img src="icon.svg" alt="" width="22" height="22" />engined</a>
      <nav aria-label="Views">
        ${rooms.map(([name, title]) => html`<a href=${link([name])} aria-current=${room === name ? 'page' : undefined}>${title}</a>`)}
      </nav>
      ${key() && html`<button class="quiet forget" onClick=${forgetKey} title="Forget the API key of this tab">Forget key</button>`}
    </header>
    <main id="main" tabindex="-1">
      ${refusal()
        ? html`<${KeyPrompt} problem=${refusal()} />`
        : html`<${Guard} key=${key() + segments.slice(0, 2).join('/')}><${View} segments=${segments} query=${query} /><//>`}
    </main>`
}

function View({ segments: [room, ...rest], query }) {
  switch (room ?? 'sessions') {
    case 'sessions': return html`<${Sessions} query=${query} />`
    case 's': return html`<${Session} sessionKey=${rest[0] ?? ''} tab=${rest[1] ?? 'window'} query=${query} />`
    case 'search': return html`<${Search} query=${query} />`
    case 'feed': return html`<${Feed} query=${query} />`
    case 'node': return html`<${Node} />`
  }
  return html`<h1>No such view</h1><p><a href=${link([])}>To the sessions</a></p>`
}

// Guard keeps a fault of one view from taking the page with it.
function Guard({ children }) {
  const [error, reset] = useErrorBoundary((e) => console.error(e))
  return error ? html`<${Failure} error=${error} retry=${reset} />` : children
}

// The hash is taken by the views, so skipping is done by hand.
function skip(event) {
  event.preventDefault()
  document.getElementById('main').focus()
}

render(html`<${App} />`, document.getElementById('app'))

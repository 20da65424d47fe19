"""Music, films, pictures and podcasts."""

from __future__ import annotations

from macaron.train.demi.tools import values
from macaron.train.demi.tools.slots import default, enum, flag, made, number, several, text, whole
from macaron.train.demi.tools.spec import Ask, Tool

_TITLE = made("Exact title.", values.title)
_DEVICE = enum("Where it plays.", "Kitchen speaker|Living room TV|Headphones|Car")

TOOLS = (
    Tool(
        "start_track",
        "Plays one song on a device.",
        {
            "track": made("Title of the song.", values.title),
            "artist": made("Name of the artist.", values.person),
            "device": _DEVICE,
            "volume": default(whole("From 0, silent, to 100.", 5, 100, 5), 50),
        },
        (
            "Play '{track}'[ by {artist}][ on {device}].",
            "I want to hear {track}[ on the device {device}][ at volume {volume}].",
            'put on "{track}"[ by {artist}]',
        ),
        asks=(Ask("Play a song on {device}.", "Which song would you like to hear?"),),
    ),
    Tool(
        "queue_album",
        "Puts all songs of an album at the end of what is played.",
        {"album": _TITLE, "artist": made("Name of the artist.", values.person), "shuffle": flag("Mixed.", "shuffled")},
        ("Queue the album {album} by {artist}[, {shuffle}].", "After this, {album} by {artist}[ {shuffle}]."),
    ),
    Tool(
        "make_playlist",
        "Creates a playlist out of songs.",
        {
            "name": made("Name of the playlist.", values.topic),
            "tracks": several("Titles of the songs.", made("", values.title), 2, 4),
            "public": default(flag("Everyone may see it.", "and make it public"), False),
        },
        (
            "Make a playlist called '{name}' with {tracks}[ {public}].",
            'New playlist "{name}": {tracks}.',
        ),
    ),
    Tool(
        "film_details",
        "Returns cast, length and rating of a film.",
        {"title": _TITLE, "year": whole("Year of release, to tell films of one name apart.", 1960, 2025)},
        ("Who plays in {title}[ from {year}]?", "Tell me about the film '{title}'[ ({year})]."),
    ),
    Tool(
        "suggest_films",
        "Suggests films by genre, year and rating.",
        {
            "genre": enum("Genre.", "comedy|thriller|drama|documentary|animation"),
            "min_year": whole("Released in this year or later.", 1970, 2024),
            "min_rating": number("Rating from 0 to 10, at least.", 5, 9),
            "count": default(whole("Number of suggestions.", 2, 12), 5),
        },
        (
            "Suggest [{count} ]{genre} films[ from {min_year} or later][ rated {min_rating} and up].",
            "I'm in the mood for {genre}[, nothing older than {min_year}].",
        ),
    ),
    Tool(
        "next_episode",
        "Returns when the next episode of a series or podcast comes.",
        {"show": _TITLE, "country": enum("Country.", "Germany=DE|Canada=CA|Brazil=BR|Japan=JP")},
        ("When is the next episode of {show}[ in {country}]?", "Next {show} episode[ in {country}]?"),
    ),
    Tool(
        "crop_picture",
        "Cuts a picture to a size in pixels.",
        {
            "file": made("Name of the picture.", values.file_name),
            "width": whole("Width in pixels.", 100, 2000, 10),
            "height": whole("Height in pixels.", 100, 2000, 10),
            "keep_original": default(flag("Write a new file.", "keeping the original"), False),
        },
        ("Crop {file} to {width}x{height}[, {keep_original}].", "Cut {file} down to {width} by {height} pixels."),
        asks=(Ask("Crop {file}.", "To which width and height, in pixels?"),),
    ),
    Tool(
        "clip_video",
        "Cuts a part out of a video.",
        {
            "file": made("Path of the video.", values.path),
            "start": number("Start in seconds.", 0, 90),
            "end": number("End in seconds.", 91, 400),
        },
        ("Cut {file} from second {start} to {end}.", "Clip {start}s to {end}s out of {file}."),
    ),
    Tool(
        "caption_post",
        "Publishes a picture with a text.",
        {
            "picture": made("Address of the picture.", values.url),
            "caption": made("Text under the picture.", values.message),
            "tags": several("Hashtags without the sign.", text("", "travel|food|vintage|running|diy|garden"), 1, 3),
            "hide_likes": default(flag("Nobody sees the count.", "with likes hidden"), False),
        },
        (
            "Post {picture} with the caption '{caption}'[ and the tags {tags}][, {hide_likes}].",
            'Publish {picture}, text: "{caption}"[, tags {tags}].',
        ),
    ),
    Tool(
        "lyrics_search",
        "Finds the song in which some words are sung.",
        {"words": made("The words.", values.message), "limit": default(whole("Songs at most.", 1, 10), 3)},
        ("Which song goes '{words}'?", 'Find the song with the line "{words}"[, top {limit}].'),
    ),
    Tool(
        "play_radio",
        "Plays a radio station.",
        {
            "station": made("Name of the station.", values.company),
            "minutes": whole("Minutes until it stops.", 10, 120, 5),
        },
        (
            "Play the station {station}[ for {minutes} minutes].",
            "Radio {station}[, off after {minutes} minutes]",
            "播放电台{station}[,{minutes}分钟后关]。",
        ),
    ),
)

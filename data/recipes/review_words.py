"""Words of praise and complaint, and what reviews are about. All of it is this project's own."""

# ruff: noqa: E501 - word lists read better unwrapped

from data.recipes.sample_words import WORDS

GOOD = {
    "adj": """wonderful|funny|charming|delightful|brilliant|moving|beautiful|clever|warm|excellent|fresh|gripping|lovely
    |superb|enjoyable|honest|touching|fascinating|elegant|memorable|good|great|fine|smart|witty|sweet|gentle|tender|thoughtful
    |intelligent|original|inventive|imaginative|rich|subtle|powerful|haunting|striking|stunning|dazzling|exciting|thrilling
    |entertaining|amusing|hilarious|engaging|absorbing|compelling|convincing|believable|graceful|heartfelt|sincere|wise|bold
    |daring|brave|vivid|lively|playful|spirited|energetic|refreshing|satisfying|rewarding|uplifting|inspiring|inspired
    |magnificent|marvelous|remarkable|extraordinary|outstanding|terrific|fantastic|glorious|perfect|flawless|masterful
    |accomplished|polished|skillful|sharp|insightful|perceptive|provocative|profound|poetic|lyrical|magical|enchanting
    |captivating|mesmerizing|riveting|suspenseful|affecting|poignant|bittersweet|humane|compassionate|generous|likable|lovable
    |winning|endearing|appealing|irresistible|sensitive|nuanced|layered|delicate|quietly affecting|well acted|well written
    |well made|well paced|beautifully shot|beautifully observed|finely drawn|full of life|easy to love|hard to forget|a lot of fun
    |worth seeing|full of surprises|ambitious|intimate|joyous|joyful|cheerful|tasty|unforgettable|worthwhile|solid|first-rate
    |top-notch|exquisite|breathtaking|gorgeous|luminous|sumptuous|seductive|sly|wry|crisp|breezy|buoyant|exhilarating
    |invigorating|stirring|rousing|timeless|authentic|truthful|credible|natural|effortless|assured|confident|ingenious|startling""",
    "noun": """a triumph|a joy|a real pleasure|a small miracle|a treat|a masterpiece|an evening well spent|a gem|a success
    |a delight from start to finish|a winner|a must|a feast for the eyes|a breath of fresh air|a pleasant surprise|a classic
    |a work of art|a celebration of life|a labor of love|a thrill|a good time|a great ride|a wonder|a fine piece of work
    |a career best|a crowd pleaser|a rare find|a quiet triumph|an achievement|an honest portrait|a rich experience|a little jewel
    |something special|great fun|a stroke of genius|a gift|a revelation|a solid piece of entertainment|a welcome return|a hit
    |one of the year 's best|a fine introduction to its subject|a moving tribute|a worthy successor|a perfect match""",
    "did": """made me laugh out loud|kept me smiling all evening|won my heart|surprised me in the best way|was worth every
    minute|left the whole room cheering|gave me hope|deserves a second visit|stayed with me for days|works beautifully
    |works on every level|never loses its way|holds your attention|keeps you guessing|keeps you on the edge of your seat|casts a spell
    |rings true|hits all the right notes|gets everything right|delivers the goods|delivers real laughs|offers plenty to enjoy
    |earns its tears|touches the heart|finds the humor in sorrow|finds beauty in small things|rewards your patience|pays off handsomely
    |lingers in the memory|has heart and brains|has real charm|has something to say|has the power to move you|sparkles from the first scene
    |moves at a brisk pace|flies by|never talks down to us|speaks to everyone|breathes new life into an old story|rises above its genre
    |succeeds on its own terms|succeeds brilliantly|leaves you wanting more|leaves you with a smile|makes you think|makes you care
    |makes the most of its cast|lights up the screen|takes real risks|grows on you|gets under your skin|is time well spent
    |goes straight to the heart|brings its people to life|comes together beautifully|exceeds expectations|respects its audience
    |captures a time and a place|tells its story with grace|is played to perfection|lifts the spirits|delights young and old""",
    "felt": "happy|grateful|inspired|thrilled|refreshed|impressed|delighted|moved|breathless|satisfied|charmed|full of joy|in tears of laughter|glad|hopeful|amazed|spellbound|enchanted|wanting more|on a high",
    "verb": "loved|enjoyed|admired|adored|recommend|treasured|liked|was delighted by|laughed at|was moved by|praised|appreciated|cheered|was charmed by|was impressed by|cannot praise enough|savored|fell in love with|will remember|was won over by",
    "stuff": """charm|wit|warmth|humor|heart|grace|intelligence|imagination|energy|tenderness|insight|originality|style|feeling|suspense
    |beauty|depth|honesty|soul|spirit|passion|wisdom|compassion|magic|good humor|great performances|sharp dialogue|real emotion|genuine laughs
    |wonderful moments|visual beauty|memorable characters|pleasant surprises|subtle touches|conviction|life|joy|sweetness|sincerity|intensity""",
    "adv": """beautifully|brilliantly|wonderfully|cleverly|delightfully|elegantly|perfectly|superbly|gracefully|skillfully|movingly
    |convincingly|admirably|lovingly|impressively|marvelously|refreshingly|intelligently|splendidly|sensitively|effectively|remarkably well""",
    "like": """like a good friend|like a warm bath|like a fine wine|like a holiday|like a gift|like a fresh wind through an open window|like poetry
    |like a good book that you cannot put down|like a song that you want to hear again""",
    "do": """see it|see it twice|do not miss it|go and see it|buy a ticket at once|take the whole family|run , do not walk , to see it|give it a chance
    |enjoy it while you can|tell your friends|bring a handkerchief and enjoy every minute""",
}
BAD = {
    "adj": """dull|boring|awful|clumsy|predictable|terrible|lifeless|ugly|silly|cold|tedious|painful|shallow|stale|noisy
    |disappointing|confusing|lazy|dreary|forgettable|bad|poor|weak|flat|thin|slow|stupid|dumb|mindless|pointless|senseless|empty|hollow
    |bland|trite|tired|worn|banal|familiar|generic|conventional|derivative|unoriginal|contrived|forced|false|fake|artificial|stilted|wooden|stiff
    |amateurish|sloppy|messy|muddled|incoherent|confused|murky|uneven|aimless|plodding|sluggish|lumbering|overlong|endless|repetitive|monotonous
    |bloated|overblown|overwrought|pretentious|pompous|preachy|manipulative|sentimental|sappy|mawkish|syrupy|cheesy|corny|crude|vulgar
    |gross|offensive|mean|nasty|cruel|unpleasant|repellent|disgusting|annoying|irritating|grating|obnoxious|insufferable|unbearable|unwatchable|horrible
    |horrid|dreadful|abysmal|atrocious|wretched|miserable|pathetic|laughable|ridiculous|absurd|ludicrous|preposterous|implausible|unconvincing
    |unfunny|humorless|joyless|charmless|soulless|bloodless|heartless|witless|tasteless|toothless|uninspired|unimaginative|uninteresting|uninvolving
    |unsatisfying|underwhelming|unnecessary|half-hearted|half-baked|ill-conceived|misguided|mediocre|inept|incompetent|bleak|gloomy|depressing|drab
    |superficial|sketchy|simplistic|obvious|heavy-handed|self-indulgent|smug|cynical|exploitative|cheap|shoddy|badly written
    |badly acted|poorly paced|hard to sit through|hard to care about|not worth your time|too long|too slow|all over the place|lame|inane|tiresome|excruciating|agonizing|numbing""",
    "noun": """a disaster|a mess|a waste of time|a bore|a failure|a bad joke|an insult|a long yawn|a disappointment
    |a chore from start to finish|a dud|a flop|a turkey|a mistake|a missed opportunity|a waste of talent|a shameless copy|a pale imitation|a dead end
    |a train wreck|a lost cause|a chore|an ordeal|a test of patience|a letdown|a pointless exercise|a cheap trick|a formula and nothing more|an embarrassment
    |a total loss|an endless lecture|a headache|junk|garbage|trash|nonsense|a muddle|a misfire|an empty exercise in style|a sad remake|a stinker
    |one of the year 's worst|nothing but noise|a tired retread|the same old story|a lump of sugar|an unhappy accident""",
    "did": """put me to sleep|made me want to leave|tested my patience|wasted a good idea|fell apart in the second half
    |gave me a headache|was not worth the money|left the whole room yawning|bored me to tears|lost me after ten minutes|goes nowhere|goes on forever
    |goes on far too long|falls flat|falls apart|runs out of steam|runs out of ideas|drags on and on|drags from the first scene|loses its way|loses interest in its own story
    |never comes to life|never takes off|never finds its feet|never gets anywhere|never makes up its mind|fails to convince|fails to amuse|fails to move
    |fails on every level|fails miserably|misses the mark|misses every chance|wears out its welcome|wears thin|sinks like a stone|collapses under its own weight
    |insults your intelligence|wastes its cast|wastes our time|squanders its talent|tries too hard|tries hard but fails|makes no sense|makes you check your watch
    |leaves you cold|leaves a bad taste|leaves nothing behind|rings false|feels like homework|has nothing to say|has no idea where to go|has no heart
    |lacks a reason to exist|borrows from better ones|steals from its betters|repeats itself|takes itself too seriously|talks down to its audience|goes through the motions
    |is best forgotten|is hard to endure|is dead on arrival|could hardly be worse|adds up to nothing|amounts to very little|never rises above cliché|suffers from a weak script""",
    "felt": "angry|bored|cheated|sad|tired|embarrassed|cold|empty|numb|annoyed|confused|exhausted|irritated|disappointed|half asleep|with a headache|unmoved|depressed|frustrated|reaching for the exit",
    "verb": "hated|regretted|disliked|endured|cannot stand|suffered through|was bored by|slept through|walked out on|could not bear|was annoyed by|cringed at|was let down by|yawned at|was insulted by|gave up on|could not wait to forget|struggled with|was irritated by|despised",
    "stuff": """clichés|noise|empty talk|self-pity|bad jokes|cheap sentiment|stale gags|wooden acting|dead air|plot holes|silly twists|false notes
    |loud explosions|tired jokes|crude humor|stock characters|stereotypes|boredom|confusion|hysteria|vulgarity|stupidity|pretension|melodrama|awkward pauses|bad taste
    |contrivances|cheap shocks|sloppy editing|nonsense|preaching|gloom|cruelty|dull stretches|mush|sap|drivel|filler|hot air""",
    "adv": """badly|clumsily|poorly|awkwardly|terribly|painfully|horribly|hopelessly|woefully|sadly|unbearably|tediously|miserably|lazily|carelessly
    |ineptly|crudely|dreadfully|wretchedly|annoyingly|embarrassingly|depressingly""",
    "like": """like a cold shower|like homework|like a visit to the dentist|like yesterday 's soup|like a lecture|like a long wait at an airport|like watching paint dry
    |like a bad dream|like an advertisement|like a rough draft""",
    "do": """skip it|stay home|save your money|avoid it|do not bother|wait for something better|look elsewhere|stay away|ask for your money back|take a nap instead
    |forget it|spend your evening on something else""",
}
ABOUT = {
    "genre": """film|movie|story|book|novel|play|show|comedy|drama|concert|album|documentary|thriller|sequel|opera|series|romance|mystery|western|musical|picture
    |tale|adventure|fable|biography|satire|farce|melodrama|feature|debut|remake|horror film|love story|family film|war film|action picture|crime story|fairy tale|cartoon|science-fiction epic""",
    "aspect": """acting|plot|music|dialogue|ending|script|first act|cast|direction|photography|humor|pace|lead actor|final scene|opening|soundtrack|costume design|heroine|villain|set
    |story|screenplay|camera work|editing|second half|love story|hero|leading lady|chemistry|action|sound design|writing|premise|idea|central performance|narration
    |staging|supporting cast|tone|romance|animation|mood|lighting|structure|theme|setting|climax|middle section""",
    "degree": "very|truly|quite|so|remarkably|really|thoroughly|rather|simply|deeply|utterly|wholly|often|always|at times|surprisingly|consistently|undeniably|genuinely|consistently|mostly|just plain|almost|frequently",
    "who": "i|we|my sister|the audience|my friends|everybody in the room|the critics|my father|the whole family|anyone over ten|most viewers|my neighbor|the crowd|fans of the genre|children and adults alike|my wife|her students|our reviewer",
    "by": "the director|the author|the writers|the composer|the young actors|the orchestra|the two stars|the band|the filmmakers|the screenwriter|the cast|the leading man|the first-time director|a fine crew|the producers|the camera|{person}|the veteran actor|the ensemble",
    "hero": """a widow|two brothers|a young teacher|a retired boxer|an aging singer|a lonely clerk|three sisters|a small-town doctor|a runaway|a spy|a thief|a soldier on leave|a farmer 's daughter
    |an immigrant family|a detective|a street musician|two strangers|a schoolboy|a nurse|a painter|a lawyer with a past|a grandmother|a cook|a ship 's captain|a poet|a chess player|twins""",
    "fate": """comes home after the war|falls in love on a train|loses everything in {city}|looks for a lost letter|learns to dance|moves to {city}|has to choose between duty and desire|finds a child in the snow
    |buys an old theater|goes on trial|crosses the desert|opens a restaurant|meets an old rival|keeps a secret for {number} years|inherits a farm in {land}|is haunted by the past|robs a bank|starts over at sixty
    |searches for a missing friend|trains for the big fight|spends one night in {city}|writes letters to nobody|grows up in {land}""",
    "topic": "love|war|family|memory|friendship|faith|money|growing old|first love|loss|marriage|ambition|exile|childhood|politics|music|revenge|class|small-town life|forgiveness|work|grief|fame",
    "span": "for two hours|from beginning to end|in its final act|after the first reel|in every scene|more often than not|for all its {topic}|in the last half hour|at every turn|scene after scene|from the first frame",
}
WORDS_HERE = (
    ABOUT
    | {f"{kind}_good": words for kind, words in GOOD.items()}
    | {f"{kind}_bad": words for kind, words in BAD.items()}
)
WORDS.update({name: [" ".join(word.split()) for word in words.split("|")] for name, words in WORDS_HERE.items()})
